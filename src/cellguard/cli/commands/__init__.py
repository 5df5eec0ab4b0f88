"""The commands, in one package per panel of the help."""
