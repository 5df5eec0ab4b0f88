"""Senses drawn by coins among those that keep the table close."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.closest.directions import Senses
from cellguard._engine.closest.directions_drawn import draw_close_senses
from cellguard._engine.closest.distance import Distance


def build_search(relations, down, up, room=1e3, weight=None) -> Senses:
    T = csr_array(np.array(relations, float))
    n = T.shape[1]
    distance = Distance.of(n, absolute=np.ones(n) if weight is None else np.array(weight, float))
    ends = np.full(n, -float(room)), np.full(n, float(room))
    return Senses(Adjuster(T), ends, np.array(down, float), np.array(up, float), distance)


def draw(search: Senses, seed: int, deadline: Deadline = NEVER):
    rng, n = np.random.default_rng(seed), len(search.mover)
    return draw_close_senses(search, rng.random(n) < 0.5, rng.permutation(n), deadline)


def test_a_total_follows_the_part_that_is_nearly_all_of_it():
    # total = large + small; both the total and the large part must move, and the small part is dear
    search = build_search([[-1, 1, 1]], [10, 10, 0], [10, 10, 0], weight=[1, 1, 100])
    for seed in range(8):
        found = draw(search, seed)
        assert found is not None
        assert found.senses[0] == found.senses[1]
        assert found.bits == 1


def test_cells_that_share_nothing_have_a_bit_each():
    search = build_search([[-1, 1, 1, 0, 0, 0], [0, 0, 0, -1, 1, 1]], [0, 5, 0, 0, 5, 0], [0, 5, 0, 0, 5, 0])
    seen = {tuple(draw(search, seed).senses.tolist()) for seed in range(40)}
    assert len(seen) == 4
    assert draw(search, 1).bits == 2


def test_a_mover_that_can_only_rise_is_public_and_costs_no_bit():
    search = build_search([[-1, 1, 1]], [0, np.inf, 0], [0, 5, 0])
    found = [draw(search, seed) for seed in range(4)]
    assert all((f.senses == 1).all() and f.public.all() and f.bits == 0 for f in found)


def test_after_the_deadline_coins_decide_the_rest():
    search = build_search([[-1, 1, 1]], [10, 10, 0], [10, 10, 0])
    found = draw(search, 3, Deadline.from_limit(0.0))
    assert found is not None
    assert (found.senses != 0).all()
    assert found.by_coin.all()


def test_the_same_coins_give_the_same_senses():
    search = build_search([[-1, 1, 1, 1]], [3, 3, 3, 0], [3, 3, 3, 0])
    assert (draw(search, 5).senses == draw(search, 5).senses).all()
