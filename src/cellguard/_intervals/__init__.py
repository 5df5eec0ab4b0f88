"""The parts of interval protection; :func:`cellguard.intervals` is the way in."""
