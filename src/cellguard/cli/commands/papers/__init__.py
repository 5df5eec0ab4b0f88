"""Commands of the panel "Papers": repeat published experiments."""
