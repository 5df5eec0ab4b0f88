# The largest contributions.

from cellguard._core import Floats, Ints

def merge_top(
    group_start: Ints, parts: Ints, list_start: Ints, items: Ints, value: Floats, weight: Floats, units: float
) -> tuple[Ints, Ints]: ...
