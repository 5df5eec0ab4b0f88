# Neighbourhoods of cells.

from cellguard._core import Bools, Floats, Ints

class Windows:
    def __init__(self, row_start: Ints, row_cell: Ints, cell_start: Ints, cell_row: Ints) -> None: ...
    def around(self, p: int, cost: Floats, usable: Bools, width: int, depth: int, most: int) -> Ints: ...
