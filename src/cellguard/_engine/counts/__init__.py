"""Two-way tables of counts."""
