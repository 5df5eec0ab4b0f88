# Which movement shows what a view cannot exclude.

from cellguard._core import Floats, Ints

def choose(
    start: Ints, index: Ints, value: Floats, share: Floats, variable: Ints, view: Ints, enough: Floats, sign: float
) -> tuple[Ints, Floats]: ...
def lower_shares(
    start: Ints, index: Ints, value: Floats, variable: Ints, view: Ints, down: Floats, up: Floats, share: Floats
) -> None: ...
