# Which movement shows what a view must hold possible.

from cellguard._core import Floats, Ints

def choose(
    start: Ints, index: Ints, value: Floats, share: Floats, variable: Ints, view: Ints, enough: Floats, sign: float
) -> tuple[Ints, Floats]: ...
