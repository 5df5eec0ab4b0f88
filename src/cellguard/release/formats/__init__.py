"""Files in which releases are written."""
