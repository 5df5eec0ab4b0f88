# Minimum degree ordering.

from cellguard._core import Ints

def minimum_degree(start: Ints, index: Ints) -> Ints: ...
