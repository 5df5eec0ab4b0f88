"""Text files and columns that describe a tree of codes."""
