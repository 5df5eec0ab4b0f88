# Rounding by areas.

from typing import TypeAlias

from cellguard._core import Bools, Floats, Ints, Network

# Low, high, kink, slope and outer price, areas by columns.
Cells: TypeAlias = tuple[Ints, Ints, Ints, Floats, Floats]

def halve(
    network: Network, first: Ints, second: Ints, target: Ints, cells: Cells, need: Ints, soft: Bools, answer: Ints
) -> int: ...
def decide_one(network: Network, area: int, cells: Cells, need: Ints, soft: Bools, answer: Ints) -> int: ...
def decide_parts(
    network: Network, items: Ints, target: Ints, cells: Cells, need: Ints, soft: Bools, x: Ints
) -> int: ...
def cancel_pairs(
    network: Network, pairs: Ints, parent: Ints, cells: Cells, soft: Bools, x: Ints, time_left_s: float = ...
) -> float: ...
