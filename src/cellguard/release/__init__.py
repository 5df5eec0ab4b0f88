"""The kinds of release, and everything that depends on the kind."""
