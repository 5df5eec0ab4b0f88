# Small movements piled up.

from cellguard._core import Floats, Ints

def pile_up(
    start: Ints, index: Ints, value: Floats, columns: Ints, amount: Floats, down: Floats, up: Floats
) -> Floats: ...
