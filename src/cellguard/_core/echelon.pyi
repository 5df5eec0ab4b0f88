# Null spaces in echelon form, and the simplex method on them.

from cellguard._core import Floats, Ints

def pivot(movement: Floats, parameter: Ints, i: int, j: int) -> None: ...
def strongest(movement: Floats, i: int) -> int: ...
def eliminate(movement: Floats, parameter: Ints, i: int, j: int) -> tuple[Ints, Floats]: ...
def echelon(vectors: Floats) -> tuple[Floats, Ints]: ...
def push(
    movement: Floats,
    parameter: Ints,
    z: Floats,
    low: Floats,
    high: Floats,
    row: int,
    sign: float,
    target: float,
    time_left_s: float = ...,
) -> float: ...
