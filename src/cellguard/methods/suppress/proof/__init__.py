"""Proven bounds of a pattern: the exact method, its inequalities, and when to spend time on a proof."""
