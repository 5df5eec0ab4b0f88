# Steps of the primal-dual method.

from cellguard._core import Floats, Ints

def saddle_steps(
    start: Ints,
    index: Ints,
    value: Floats,
    sides: Floats,
    cost: Floats,
    upper: Floats,
    columns: Ints,
    x: Floats,
    dual: Floats,
    size: float,
    steps: int,
    mean: Floats,
) -> None: ...
