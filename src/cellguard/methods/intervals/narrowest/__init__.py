"""The narrowest intervals by interior points and flows."""
