"""Example tables, generated tables and the demonstration survey."""
