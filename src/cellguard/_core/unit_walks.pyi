# Movements in whole numbers, unit by unit.

from cellguard._core import Floats, Ints

def walk(
    start: Ints,
    index: Ints,
    value: Floats,
    row_start: Ints,
    row_index: Ints,
    row_value: Floats,
    down: Floats,
    up: Floats,
    variables: Ints,
    wanted: Floats,
    seed: int,
    time_left_s: float,
) -> tuple[Ints, Ints, Floats]: ...
