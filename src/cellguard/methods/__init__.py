"""The five ways to protect a table, what they share, and their comparison."""
