"""What many attackers ask for: requests that another one implies are left out, without comparing all with all."""

from __future__ import annotations

import numpy as np
import pytest

from cellguard import generate
from cellguard.methods.suppress import requests
from cellguard.model.attacker import EXTERNAL, Attacker


def many_attackers(seed: int, n: int):
    table = generate.hierarchical(seed, branching=((3, 3), (4,)), sensitive=0.2, zeros=0)
    rng = np.random.default_rng(seed)
    free = np.flatnonzero(~table.fixed & ~table.sensitive)
    attackers = [EXTERNAL]
    for k in range(n):
        cells = np.sort(rng.choice(free[:6], rng.integers(0, 4), replace=False))
        a, width = table.values[cells], rng.choice([0.0, 0.3, 0.5], len(cells))
        attackers.append(Attacker(name=str(k), cells=cells, lb=a * (1 - width), ub=a * (1 + width)))
    return table.with_(attackers=tuple(attackers))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_out_is_implied_and_nothing_else_is(seed, monkeypatch):
    table = many_attackers(seed, 25)
    few = requests.translate_levels(table).requests
    monkeypatch.setattr(requests, "_drop_implied_requests", lambda every, _known, **_: every)
    every = requests.translate_levels(table).requests
    asked = requests.translate_levels(table)
    rooms = []
    for k in range(len(asked.known_ptr) - 1):
        span = slice(asked.known_ptr[k], asked.known_ptr[k + 1])
        room = zip(asked.known_down[span].tolist(), asked.known_up[span].tolist(), strict=True)
        rooms.append(dict(zip(asked.known_cell[span].tolist(), room, strict=True)))
    kept, dropped = [], set()
    for q in range(len(every)):
        same = [by for by in range(len(every)) if every.cell[by] == every.cell[q] and by != q and by not in dropped]
        scalable = bool(every.sliding[q] <= every.lower[q] + every.upper[q])
        if any(requests._is_implied_by(every, rooms, by, q, scalable=scalable) for by in same):
            dropped.add(q)
        else:
            kept.append(q)
    assert 0 < len(kept) < len(every)
    assert few.cell.tolist() == every.cell[kept].tolist()
    assert few.attacker.tolist() == every.attacker[kept].tolist()


def test_the_work_does_not_grow_with_the_square_of_the_attackers(monkeypatch):
    calls = 0
    implies = requests._is_implied_by

    def counted(*args, **more):
        nonlocal calls
        calls += 1
        return implies(*args, **more)

    monkeypatch.setattr(requests, "_is_implied_by", counted)
    table = generate.hierarchical(1, branching=((3, 3), (4,)), sensitive=0.2, zeros=0)
    free = np.flatnonzero(~table.fixed & ~table.sensitive)
    known = [
        Attacker(name=str(c), cells=np.array([c]), lb=table.values[[c]], ub=table.values[[c]]) for c in free.tolist()
    ]
    asked = requests.translate_levels(table.with_(attackers=(EXTERNAL, *known)))
    assert len(known) > 20
    assert calls <= 3 * len(asked.requests)
