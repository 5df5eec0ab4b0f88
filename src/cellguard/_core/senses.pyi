# The sense of each cell for which the totals above move least.

from cellguard._core import Bools, Floats, Ints

def anneal(
    start: Ints,
    index: Ints,
    value: Floats,
    weight: Floats,
    offset: Floats,
    own: Floats,
    runs_and_steps: tuple[int, int],
    heat: tuple[float, float],
    seed: int,
    time_left_s: float = ...,
) -> tuple[Bools, float]: ...
