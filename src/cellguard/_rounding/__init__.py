"""The pieces of controlled rounding. Arrays in, arrays out; the verb is :func:`cellguard.round`."""
