"""Whatever enters the compiled core, it answers or refuses: random shapes, empty arrays, infinities and NaN.

`make sanitize` runs this with every access to memory checked.
"""

from __future__ import annotations

import contextlib

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cellguard._core import (
    areas,
    cholesky,
    circuits,
    echelon,
    elimination,
    factors,
    flows,
    gram,
    interior,
    mincut,
    ordering,
    patterns,
    pile,
    saddle,
    schur,
    senses,
    top,
    twoway,
    widest,
    windows,
    witnesses,
)
from cellguard._engine.space.network import build_adjacency

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 1e-9, 1e300, -1e300, np.inf, -np.inf, np.nan])
SHORT_S = 0.05


def by_rows(there: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each row begins, and the columns of its entries."""
    return np.concatenate([[0], np.cumsum(there.sum(axis=1))]), np.flatnonzero(there) % max(there.shape[1], 1)


class Draw:
    """Arrays that fit together, mostly; now and then one that does not."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.tame = self.rng.random() < 0.5

    def size(self, most: int = 7) -> int:
        return int(self.rng.integers(0, most + 1))

    def at(self, n: int) -> int:
        return int(self.rng.integers(0, max(n, 1)))

    def numbers(self, *shape: int) -> np.ndarray:
        shape = self.off(shape)
        values = self.rng.integers(-2, 3, shape).astype(float)
        if not self.tame:
            where = self.rng.random(shape) < 0.2
            values[where] = self.rng.choice(SPECIAL, int(where.sum()))
        return values

    def number(self) -> float:
        return float(self.rng.choice(SPECIAL)) if not self.tame else float(self.rng.integers(-2, 3))

    def whole(self, low: int, high: int, *shape: int) -> np.ndarray:
        values = self.rng.integers(low, max(high, low + 1), self.off(shape))
        if self.rng.random() < 0.03 and values.size:
            values.flat[0] = self.rng.choice([-1, high, 1 << 62])
        return values

    def flags(self, *shape: int) -> np.ndarray:
        return self.rng.random(self.off(shape)) < 0.6

    def off(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(max(0, n + int(self.rng.integers(-1, 2))) if self.rng.random() < 0.01 else n for n in shape)

    def sparse(self, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        there = self.rng.random((rows, columns)) < 0.4
        start, index = by_rows(there)
        if self.rng.random() < 0.03 and len(start) > 1:
            start[-1] += 1
        return start, index, self.numbers(len(index))

    def form(self) -> tuple[np.ndarray, np.ndarray]:
        d, free = self.size(), self.size()
        Z = np.hstack([np.eye(d), self.numbers(d, free)]) if self.rng.random() < 0.95 else self.numbers(d, d + free)
        return np.ascontiguousarray(Z), np.arange(d)

    def network(self) -> tuple[np.ndarray, ...]:
        n, m = self.size() + 1, self.size(12)
        tail, head = self.rng.integers(0, n, m), self.rng.integers(0, n, m)
        start, arcs = build_adjacency(tail, head, n)
        if self.rng.random() < 0.03 and m:
            arcs[0] = m
        return tail, head, start, arcs

    def task(self, n: int) -> tuple[object, ...]:
        attackers, asked, entries = self.size(2) + 1, self.size(), self.size(3)
        start = np.sort(np.append(self.rng.integers(0, entries + 1, attackers - 1), [0, entries]))
        known = (start, self.whole(0, n, entries), -np.abs(self.numbers(entries)), np.abs(self.numbers(entries)))
        levels = np.abs(self.numbers(3, asked))
        requests = (np.sort(self.whole(0, attackers, asked)), self.whole(0, n, asked), *levels)
        return -np.abs(self.numbers(n)), np.abs(self.numbers(n)), known, requests


def _patterns(d: Draw) -> None:
    Z, parameter = d.form()
    n = Z.shape[1]
    low, high, known, requests = d.task(n)
    bank, asked = d.numbers(d.size(), n), len(requests[1])
    patterns.stretch(d.numbers(n), low, high)
    patterns.count(d.numbers(n), low, high, known, requests, np.zeros(asked), np.zeros(asked))
    if asked:
        patterns.is_met(0, requests, np.zeros(asked), np.zeros(asked))
    proof, _ = patterns.prove(Z, parameter, low, high, known, requests, bank, d.size(), time_left_s=SHORT_S)
    state = d.whole(0, 3, n)
    limits = float(d.rng.choice([np.inf, 3.0])), d.size(30)
    patterns.clean(
        Z, parameter, d.numbers(n), state, low, high, known, requests, proof, *limits, np.zeros(asked), SHORT_S
    )
    patterns.recombine(
        d.numbers(d.size(), n),
        d.numbers(n),
        d.numbers(n),
        d.flags(n),
        low,
        high,
        known,
        requests,
        bank,
        np.inf,
        SHORT_S,
    )
    if n:
        patterns.without(bank, d.numbers(n), 0)


def _echelon(d: Draw) -> None:
    Z, parameter = d.form()
    n = Z.shape[1]
    i, j = d.at(n), d.at(len(Z))
    echelon.push(Z, parameter, np.zeros(n), *d.task(n)[:2], i, 1.0, float(d.rng.choice(SPECIAL)), SHORT_S)
    echelon.echelon(d.numbers(d.size(), d.size()))
    circuits.lightest(Z, parameter, d.whole(0, n, d.size()))
    circuits.excess(Z, parameter, d.numbers(n))
    circuits.express(Z, i, d.whole(0, n, d.size()))
    echelon.strongest(Z, i)
    echelon.pivot(Z, parameter, i, j)
    echelon.eliminate(Z, parameter, i, j)


def _elimination(d: Draw) -> None:
    m, n = d.size(), d.size()
    start, index, value = d.sparse(m, n)
    relations = start, index, value, np.abs(d.whole(0, elimination.PRIME, len(index)))
    free = d.flags(n)
    definitions = elimination.choose_definitions(relations, free)
    exact, value = d.whole(0, elimination.PRIME, n), d.numbers(n)
    elimination.propagate(relations, free, definitions, exact, value)
    left = elimination.leftover_relations(relations, free, exact, exact)
    _, *pivots, coefficient, coefficient_f = elimination.eliminate(relations, free, definitions, left)
    elimination.combine(tuple(pivots), coefficient, coefficient_f, exact, value)
    parameters = np.setdiff1d(np.flatnonzero(free & (definitions[0] < 0)), pivots[0])
    elimination.null_space(*relations[:3], free, definitions, parameters, tuple(pivots), coefficient_f)
    elimination.quotients(exact, exact, exact)
    elimination.between_classes(
        *relations[:3], d.whole(0, m, d.size()), d.whole(-1, n, n), d.numbers(n), d.size() if d.size() > 5 else n
    )
    elimination.join(start, index, d.whole(0, m, d.size()), free)


def _factor(d: Draw) -> None:
    n = d.size(12)
    start, index, _ = d.sparse(n, n)
    if d.rng.random() < 0.2:
        ordering.minimum_degree(start, index)
    ordering.minimum_degree(*by_rows((there := np.triu(d.rng.random((n, n)) < 0.4, 1)) | there.T))
    there = np.tril(d.rng.random((n, n)) < 0.4, -1)
    strict = by_rows(there)
    tree = cholesky.elimination_tree(*strict)
    cholesky.postorder(tree)
    counts = cholesky.column_counts(*strict, tree)
    lower = by_rows(there | np.eye(n, dtype=bool))
    factor = cholesky.Factor(*lower, tree, counts, int(d.rng.integers(1, 9)))
    factor.factorize(d.numbers(len(lower[1])), 1e-14)
    factor.solve(d.numbers(n))


def _systems(d: Draw) -> None:
    cells, rank = d.size(), d.size()
    M = d.sparse(cells, rank)
    dense = gram.DenseSystem(*M, rank)
    dense.fill(d.numbers(cells), np.zeros((rank, rank)))
    dense.along(d.numbers(rank, rank), d.numbers(cells), d.numbers(cells), d.size(3))
    dense.across(d.numbers(rank, rank), d.numbers(cells), d.numbers(cells), d.numbers(cells), d.size(3))
    lower = by_rows(np.tril(np.ones((rank, rank), bool)))
    place = gram.places(*M[:2], *lower)
    gram.sparse_gram(M[0], M[2], d.numbers(cells), place, np.zeros(len(lower[1])))
    H = np.zeros((rank, rank))
    schur.normal(*M, d.numbers(cells), H)
    schur.mirror(H)
    schur.accumulate(np.zeros((cells, cells)), *M, d.numbers(rank, rank), d.numbers(cells))
    schur.accumulate(np.zeros((2 * cells, 2 * cells)), *M, d.numbers(rank, rank), d.numbers(cells), d.numbers(cells))
    k = d.size()
    schur.project(*M, d.numbers(k, rank, rank), d.numbers(k, cells), d.numbers(k, cells))
    columns = d.whole(0, cells, d.size() if cells else 0)
    pile.pile_up(*M, columns, d.numbers(len(columns)), np.abs(d.numbers(rank)), np.abs(d.numbers(rank)))
    rate = (d.size(), d.size(50)), (1.0, abs(float(d.numbers(1).sum())))
    senses.anneal(*M, d.numbers(rank), d.numbers(rank), d.numbers(cells), *rate, d.at(9))
    saddle.saddle_steps(
        *M, d.numbers(rank), d.numbers(cells), d.numbers(cells), columns, d.numbers(cells), d.numbers(rank),
        0.1, d.size(), d.numbers(cells),
    )  # fmt: skip


def _networks(d: Draw) -> None:
    net = d.network()
    m, n = len(net[0]), len(net[2]) - 1
    arcs = d.whole(0, m, d.size())
    mincut.narrow(net, arcs, d.flags(len(arcs)), *(np.abs(d.numbers(k)) for k in (len(arcs), m, m)))
    flows.negative_cycle(net, d.numbers(m), d.numbers(m))
    start = np.concatenate([[0], np.cumsum(d.whole(0, 4, m))])
    flows.cheapest_flow(net, d.whole(-2, 3, n), d.whole(-2, 3, m), start, d.numbers(int(start[-1])), np.zeros(m, int))
    count = d.size() + 1
    bounds = d.whole(-3, 1, count, m), d.whole(-1, 4, count, m), d.whole(-2, 3, count, m)
    cells = (*bounds, d.numbers(count, m), np.abs(d.numbers(count, m)))
    soft, answer, x = d.flags(m), np.zeros(m, int), d.whole(-2, 3, count, m)
    areas.decide_one(net, 0, cells, d.whole(-2, 3, n), soft, answer)
    some = d.whole(0, count, d.size()), d.whole(0, count, d.size())
    areas.halve(net, *some, d.whole(-4, 5, m), cells, d.whole(-2, 3, n), soft, answer)
    areas.decide_parts(net, some[0], d.whole(-4, 5, m), cells, d.whole(-2, 3, count, n), soft, x)
    parent = np.append(-1, [d.rng.integers(-1, i) for i in range(1, count)]).astype(np.int64)
    pairs = np.stack([d.whole(0, count, 4), d.whole(-1, count, 4)], axis=1)
    areas.cancel_pairs(net, pairs, parent, cells, soft, x, SHORT_S)


def _interior(d: Draw) -> None:
    n, bounds, pairs, shared = 1 + d.size(), d.size(), d.size(3), d.size(2)
    rest = d.size() if shared else 0
    m, one = bounds + 2 * pairs + rest, d.whole(0, n, pairs)
    mover = np.concatenate([d.whole(0, n, bounds), one, one, d.whole(0, n, rest)])
    aux = np.concatenate([np.zeros(bounds, np.int64), *2 * [np.arange(pairs)], pairs + d.whole(0, shared, rest)])
    rows = (d.numbers(m), 1.0 + np.abs(d.numbers(m)), d.numbers(m))
    newton = interior.Newton(
        *(d.numbers(n), d.numbers(n), (mover, aux), rows),
        *((d.numbers(pairs + shared), d.numbers(pairs + shared)), (bounds, pairs)),
    )
    positive = [np.abs(d.numbers(m)) + 0.5 for _ in range(3)]
    newton.stand(d.numbers(n), d.numbers(pairs + shared), *positive[:2])
    newton.condense(positive[2])
    for aim in (newton.predict, newton.correct, newton.balance):
        assert [len(each) for each in aim()] == [n, shared]
        newton.follow(d.numbers(n), d.numbers(shared))
    newton.balanced(d.numbers(n), d.numbers(shared))
    newton.advance(0.9, bool(d.size(1)))
    assert 0.0 < interior.longest_step(positive[0], d.numbers(m)) <= 2.0


def _tables(d: Draw) -> None:
    m, n = d.size(), d.size()
    start, index, value = d.sparse(m, n)
    by_cell = np.argsort(index, kind="stable")
    row = (
        np.repeat(np.arange(m), np.diff(start)) if start[-1] == len(index) else d.rng.integers(0, max(m, 1), len(index))
    )
    cell = np.concatenate([[0], np.cumsum(np.bincount(index, minlength=n))]), row[by_cell]
    factors.classes(start, index, value, *cell)
    around = windows.Windows(start, index, *cell)
    around.around(d.at(n), d.numbers(n), d.flags(n), d.size(), d.size(3), d.size(20))
    lists, groups = d.sparse(d.size(), n)[:2], d.size()
    top.merge_top(*d.sparse(groups, len(lists[0]) - 1)[:2], *lists, d.numbers(n), np.abs(d.numbers(n)), float(d.size()))


def _circuits(d: Draw) -> None:
    m, n = d.size(), d.size()
    found = widest.widest(*d.sparse(m, n), d.rng.permutation(n), d.size(200), SHORT_S)
    assert found[0][-1] == len(found[1]) == len(found[2])
    order = d.whole(0, len(found[0]) - 1, d.size())
    widest.added(*found, order, d.at(n), d.number(), np.abs(d.numbers(n)))
    views, asked = d.size(), d.size(20)
    shares = np.abs(d.numbers(m, views))
    ask = d.whole(0, n, asked), d.whole(0, views, asked), np.abs(d.numbers(asked))
    witnesses.choose(*d.sparse(n, m), shares, *ask, 1.0)
    witnesses.lower_shares(*d.sparse(n, m), *ask[:2], ask[2], np.abs(d.numbers(asked)), shares)


def _counts(d: Draw) -> None:
    r, c = d.size(5), d.size(5)
    x, rows = d.whole(0, 5, r, c), d.whole(0, 1 << c, r)
    twoway.spans(x, rows)
    twoway.first_candidate(x, rows)
    twoway.candidates(x, rows, 20)
    twoway.count_candidates(x, rows, 1000)
    twoway.basis(rows, -1, x)
    cost = d.whole(1, 9, r, c)
    need = np.argwhere(x == 1).astype(np.int64)
    twoway.optimal_pattern(x, need, d.size(4), cost, 500)
    siege = twoway.Siege(x, rows, (1, 3, d.size(4), cost, d.size(2)), subsets=bool(d.size(1)), hunt=bool(d.size(1)))
    for cell in range(min(r * c, 6)):
        siege.scan(cell, from_low=bool(d.size(1)), stop=d.size(9), limit=200)
    siege.surviving_draws(d.whole(0, 5, 2, r, c), d.whole(1, 9, 2, r, c), hunt=True, limit=100)
    assert siege.outer[0].shape == siege.hull[1].shape == (r, c)


SUBJECTS = (_patterns, _echelon, _elimination, _factor, _systems, _interior, _networks, _tables, _circuits, _counts)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(SUBJECTS))
def test_the_core_answers_or_refuses(seed, subject):
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        subject(Draw(seed))
