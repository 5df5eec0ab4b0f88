"""Commands of the panel "Tables": describe, plan and generate tables."""
