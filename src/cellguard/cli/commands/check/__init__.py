"""Commands of the panel "Check": audit, prove and attack what is published."""
