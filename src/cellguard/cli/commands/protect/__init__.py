"""Commands of the panel "Protect" that are no single method; those of the methods are generated from the registry."""
