"""Parts of :func:`cellguard.suppress`: construct, clean up, improve, prove."""
