"""What anybody can compute from a release: the audit, its witnesses, the attacks. No method is imported here."""
