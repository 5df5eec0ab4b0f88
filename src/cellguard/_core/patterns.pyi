# Search over patterns.

from typing import TypeAlias

from cellguard._core import Bools, Floats, Ints

# Further knowledge of attackers: where each one's entries begin, their variables, and bounds of their movements.
Known: TypeAlias = tuple[Ints, Ints, Floats, Floats]
# Attacker, variable, and how far down, up and in total it must be able to move.
Requests: TypeAlias = tuple[Ints, Ints, Floats, Floats, Floats]

def stretch(z: Floats, low: Floats, high: Floats) -> tuple[float, float]: ...
def is_met(request: int, requests: Requests, reached_down: Floats, reached_up: Floats) -> bool: ...
def count(
    z: Floats, low: Floats, high: Floats, known: Known, requests: Requests, reached_down: Floats, reached_up: Floats
) -> bool: ...
def prove(
    movement: Floats,
    parameter: Ints,
    low: Floats,
    high: Floats,
    known: Known,
    requests: Requests,
    bank: Floats,
    patience: int,
    time_left_s: float = ...,
) -> tuple[Floats, Bools]: ...
def without(bank: Floats, used: Floats, i: int) -> Floats: ...
def clean(
    movement: Floats,
    parameter: Ints,
    weight: Floats,
    state: Ints,
    low: Floats,
    high: Floats,
    known: Known,
    requests: Requests,
    bank: Floats,
    stop_above: float,
    tries: int,
    trouble: Floats,
    time_left_s: float = ...,
) -> tuple[Ints, Floats, Ints, Floats, bool]: ...
def recombine(
    vectors: Floats,
    weight: Floats,
    noisy: Floats,
    keep: Bools,
    low: Floats,
    high: Floats,
    known: Known,
    requests: Requests,
    bank: Floats,
    stop_above: float,
    time_left_s: float = ...,
) -> tuple[float, Floats, Floats]: ...
