# Which relations run along the same dimension.

from cellguard._core import Floats, Ints

def classes(start: Ints, index: Ints, value: Floats, cell_start: Ints, cell_row: Ints) -> Ints: ...
