"""Modules shared by the commands: options, printing, start-up."""
