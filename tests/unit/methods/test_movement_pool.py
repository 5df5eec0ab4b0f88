"""What a movement shows is found from what everybody knows, and corrected by what one attacker knows besides."""

import numpy as np
import pytest

import cellguard as cg
from cellguard.datasets import generate
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.search.movement_pool import Ledger


def plainly(ledger, request, movement):
    """Whether the movement meets the request, by the room of every cell in the attacker's eyes."""
    r, (cells, z) = ledger.problem.requests, movement
    v = float(z[np.flatnonzero(cells == r.cell[request])[0]])
    below, above = ledger.get_slack(int(r.attacker[request]), cells)
    forth = (np.where(z > 0, above, below) / np.abs(z)).min() * abs(v)
    back = (np.where(z > 0, below, above) / np.abs(z)).min() * abs(v)
    up, down = (forth, back) if v > 0 else (back, forth)
    return bool(up >= r.upper[request] and down >= r.lower[request] and up + down >= r.sliding[request])


@pytest.mark.parametrize("seed", range(5))
def test_a_movement_meets_what_it_meets_by_every_room(seed):
    rng = np.random.default_rng(seed)
    table = generate.hierarchical(seed, branching=((3, 3), (3, 3)), sensitive=0.1)
    open_ = np.flatnonzero(~table.sensitive & ~table.fixed & (table.values > 0))
    known = [np.sort(rng.choice(open_, 12, replace=False)) for _ in range(6)]
    table = table.with_(
        attackers=tuple(
            cg.Attacker(name=str(k), cells=c, lb=table.values[c] * 0.9, ub=table.values[c] * 1.05)
            for k, c in enumerate(known)
        )
    )
    problem = SuppressionProblem.of(table, forced=table.sensitive)
    ledger = Ledger(problem)
    seen = set()
    usable = np.flatnonzero(problem.usable)
    for request in range(len(problem.requests)):
        cell = int(problem.requests.cell[request])
        cells = np.union1d(rng.choice(usable, 5, replace=False), [cell])
        z = rng.choice((-1.0, 1.0), len(cells)) * rng.uniform(0.1, 1.0, len(cells))
        number = ledger.add((cells, z))
        ledger.serve(request, (number,))
        expected = plainly(ledger, request, (cells, z))
        assert ledger.is_met_by(request, number) is expected
        seen.add(expected)
    assert seen == {True, False}
