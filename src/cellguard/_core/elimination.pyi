# Exact elimination over a prime field.

from typing import TypeAlias

from cellguard._core import Bools, Floats, Ints

# By rows: where each begins, cells, coefficients, and the coefficients modulo the prime.
Relations: TypeAlias = tuple[Ints, Ints, Floats, Ints]
# The relation that defines each total (-1: a leaf), and the totals, parts before their total.
Definitions: TypeAlias = tuple[Ints, Ints]
# Leaves, where the combination of each begins and ends, and the leaves in it.
Pivots: TypeAlias = tuple[Ints, Ints, Ints, Ints]

PRIME: int

def choose_definitions(relations: Relations, free: Bools) -> tuple[Ints, Ints]: ...
def propagate(relations: Relations, free: Bools, definitions: Definitions, exact: Ints, value: Floats) -> None: ...
def leftover_relations(relations: Relations, free: Bools, first: Ints, second: Ints) -> Ints: ...
def eliminate(
    relations: Relations, free: Bools, definitions: Definitions, rows: Ints
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Floats]: ...
def combine(pivots: Pivots, coefficient: Ints, coefficient_f: Floats, exact: Ints, value: Floats) -> None: ...
def null_space(
    start: Ints,
    index: Ints,
    value: Floats,
    free: Bools,
    definitions: Definitions,
    parameters: Ints,
    pivots: Pivots,
    coefficient: Floats,
) -> tuple[Ints, Ints, Floats]: ...
def between_classes(
    start: Ints, index: Ints, value: Floats, rows: Ints, class_of: Ints, ratio: Floats, classes: int
) -> tuple[Ints, Ints, Floats]: ...
def quotients(first: Ints, second: Ints, third: Ints) -> Ints: ...
def join(start: Ints, index: Ints, rows: Ints, moving: Bools) -> Ints: ...
