"""Tables that share cells: how they are joined, their clusters and their unpublished cross."""
