"""The audit of a release, its witnesses, and their verification. Imports no method."""
