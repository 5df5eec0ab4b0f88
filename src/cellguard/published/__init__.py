"""What is already published: ranges of withheld cells from public data alone, without the true table."""
