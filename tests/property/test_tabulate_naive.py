"""Tabulation and rules against the plainest implementation there is: a loop over records, in fractions."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cellguard as cg

TREES = [
    ["A", "B", "C"],
    {"N": ["A", "B"], "S": ["C", "D"]},
    {"N": {"N1": ["A", "B"], "N2": ["C"]}, "S": ["D"], "E": []},
    {"N": {"N1": {"N11": ["A"]}}, "S": ["B", "C"]},
]
LEAVES = {0: "ABC", 1: "ABCD", 2: "ABCDE", 3: "ABC"}


@st.composite
def surveys(draw):
    """Records with two dimensions and everything that may be said of them."""
    first, second = draw(st.sampled_from(range(4))), draw(st.sampled_from(range(4)))
    n = draw(st.integers(1, 25))
    cents = st.integers(-500 if draw(st.booleans()) else 0, 5000)
    weights = st.integers(1 if draw(st.booleans()) else 0, 40) if draw(st.booleans()) else st.just(10)

    def column(strategy):
        return draw(st.lists(strategy, min_size=n, max_size=n))

    return {
        "trees": (TREES[first], TREES[second]),
        "region": column(st.sampled_from(LEAVES[first])),
        "nace": column(st.sampled_from(LEAVES[second])),
        "value": column(cents),
        "shadow": column(st.integers(0, 5000)),
        "weight": column(weights),
        "holding": column(st.integers(1, draw(st.integers(1, 12)))),
        "waiver": column(st.booleans()),
        "use": {part: draw(st.booleans()) for part in ("shadow", "weight", "holding", "waiver")},
    }


def ancestors(hierarchy: cg.Hierarchy) -> dict[str, set[str]]:
    M = hierarchy.build_matrix().toarray()
    return {
        code: {hierarchy.codes[hierarchy.leaves[j]] for j in np.flatnonzero(M[i])}
        for i, code in enumerate(hierarchy.codes)
    }


def naive_cell(survey, rows):
    """Contributors of a cell: (contribution, weight, waived), largest first, and what is published."""
    use = survey["use"]
    w = [Fraction(survey["weight"][i], 10) if use["weight"] else Fraction(1) for i in range(len(survey["value"]))]
    looked = survey["shadow"] if use["shadow"] else survey["value"]
    groups = defaultdict(list)
    for i in rows:
        groups[survey["holding"][i] if use["holding"] else i].append(i)
    contributors = []
    for members in groups.values():
        x = sum(Fraction(looked[i], 100) for i in members)
        size = sum(abs(Fraction(looked[i], 100)) for i in members)
        weighted = sum(w[i] * abs(Fraction(looked[i], 100)) for i in members)
        weight = weighted / size if size else sum(w[i] for i in members) / len(members)
        waived = use["waiver"] and all(survey["waiver"][i] for i in members)
        contributors.append((abs(x), weight, weight * abs(x), waived))
    contributors.sort(key=lambda c: -c[0])
    published = sum(w[i] * Fraction(survey["value"][i], 100) for i in rows)
    return contributors, published


def fill(contributors, units):
    """Sum of the largest contributions that fill so many units."""
    total, left = Fraction(0), Fraction(units)
    for x, w, _, _ in contributors:
        part = min(w, left)
        total += part * x
        left -= part
    return total


def naive_verdict(contributors, published, rule, *, shadowed):
    """Whether the cell is unsafe, and its level: the formulas in FORMATS, word by word."""
    if not contributors:
        return False, Fraction(0)
    X = sum(wx for _, _, wx, _ in contributors)
    protected = [c[0] for c in contributors if not c[3]]
    if isinstance(rule, cg.MinFrequency):
        return bool(protected) and len(contributors) < rule.n, abs(published) * Fraction(rule.percent) / 100
    if not protected:
        return False, Fraction(0)
    first = protected[0]

    def sum_largest(units):
        everybody, others = fill(contributors, units), fill(contributors, units - 1)
        return everybody if not any(c[3] for c in contributors) else others + min(first, everybody - others)

    if isinstance(rule, cg.Dominance):
        unsafe = X > 0 and 100 * sum_largest(rule.n) > rule.k * X
        level = Fraction(100, rule.k) * sum_largest(rule.n) - X
    else:
        q = getattr(rule, "q", 100)
        s = sum_largest(rule.coalition + 1)
        unsafe = Fraction(rule.p, 100) * first + Fraction(q, 100) * (s - X) > 0
        level = Fraction(rule.p, q) * first + s - X
    if shadowed:
        level = level / X * abs(published) if X else Fraction(0)
    return unsafe, level


RULES = [
    cg.PPercent(10),
    cg.PPercent(25, coalition=2),
    cg.PriorPosterior(10, 40),
    cg.Dominance(1, 60),
    cg.Dominance(3, 90),
    cg.MinFrequency(3, percent=10),
]


@settings(max_examples=60)
@given(survey=surveys())
def test_every_number_and_every_verdict_agrees_with_a_loop_over_records(survey):
    use = survey["use"]
    hierarchies = [cg.Hierarchy.from_nested(tree) for tree in survey["trees"]]
    frame = {
        "region": survey["region"],
        "nace": survey["nace"],
        "x": [v / 100 for v in survey["value"]],
        "s": [v / 100 for v in survey["shadow"]],
        "w": [v / 10 for v in survey["weight"]],
        "h": survey["holding"],
        "q": survey["waiver"],
    }
    parts = {
        part: column
        for part, column in (("shadow", "s"), ("weight", "w"), ("holding", "h"), ("waiver", "q"))
        if use[part]
    }
    table = cg.tabulate(frame, {"region": hierarchies[0], "nace": hierarchies[1]}, "x", threads=1, **parts)
    below = [ancestors(h) for h in hierarchies]
    stats = table.statistics
    codes = table.cell_codes()
    cells = []
    for cell in range(table.n_cells):
        region, nace = codes["region"][cell], codes["nace"][cell]
        rows = [
            i
            for i in range(len(survey["value"]))
            if survey["region"][i] in below[0][region] and survey["nace"][i] in below[1][nace]
        ]
        contributors, published = naive_cell(survey, rows)
        cells.append((contributors, published))
        assert table.values[cell] == pytest.approx(float(published), abs=1e-9)
        assert stats.count[cell] == len(contributors)
        assert stats.total[cell] == pytest.approx(float(sum(c[2] for c in contributors)), abs=1e-9)
        assert table.fixed[cell] == (not rows)
        for units in (1, 2, 3):
            assert stats.largest(units)[cell] == pytest.approx(float(fill(contributors, units)), abs=1e-9)
    for rule in RULES:
        flagged = table.apply(rule)
        for cell, (contributors, published) in enumerate(cells):
            unsafe, level = naive_verdict(contributors, published, rule, shadowed=use["shadow"])
            assert flagged.sensitive[cell] == unsafe, (rule, cell)
            if unsafe:
                room = table.values[cell] - table.lb[cell]
                assert flagged.upper[cell] == pytest.approx(float(level), abs=1e-9)
                assert flagged.lower[cell] == pytest.approx(min(float(level), max(room, 0.0)), abs=1e-9)
