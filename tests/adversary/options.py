"""All methods with all their options, drawn at random; what a verb does not know is left out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import cellguard as cg
from adversary.cases import Case
from adversary.meaning import list_needs

Rng = np.random.Generator
LIMIT_S = 5.0
"""Seconds a method may take for one of these small tables."""
VERBS: dict[str, Callable[..., cg.Release]] = {
    "suppress": cg.suppress, "intervals": cg.intervals, "round": cg.round, "perturb": cg.perturb, "adjust": cg.adjust,
}  # fmt: skip
LEFT_OUT = {"table", "progress", "threads", "keeper", "insiders", "accept", "earlier", "derived", "areas"}
"""Parameters that decide nothing about what is published; who is considered, and what was published before, which have
tests of their own (unit/methods/test_partial.py, unit/history); and areas, whose distances the judge does not read."""


def _one(rng: Rng, *options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


def _some(rng: Rng, cells: np.ndarray, share: float) -> list[int]:
    return cells[rng.random(len(cells)) < share].tolist()


def _suppress(rng: Rng, case: Case) -> dict[str, Any]:
    open_cells = np.flatnonzero(~case.table.sensitive)
    out: dict[str, Any] = {
        "method": _one(rng, "auto", "auto", "heuristic", "exact"),
        "time_limit_s": LIMIT_S,
        "rounds": _one(rng, 1, 3, 10),
        "gap": _one(rng, 0.0, 0.0, 0.05),
    }
    if rng.random() < 0.2:
        out["weights"] = _one(rng, "unit", "value", "log", "sqrt", "inverse", "power")
        out["power"] = _one(rng, 0.0, 0.5)
    if rng.random() < 0.1:
        out["prefer"] = _some(rng, open_cells, 0.3)
    if rng.random() < 0.1:
        out["must_publish"] = _some(rng, open_cells, 0.1)
    if rng.random() < 0.1:
        out["already_suppressed"] = _some(rng, open_cells[~case.table.fixed[open_cells]], 0.1)
    if case.threshold is not None and rng.random() < 0.7:
        out = {"time_limit_s": LIMIT_S}
    if case.table.integer and rng.random() < (0.7 if case.threshold is not None else 0.05):
        out["resist"] = "matching"
    return out


def _intervals(rng: Rng, case: Case) -> dict[str, Any]:
    out: dict[str, Any] = {"time_limit_s": LIMIT_S}
    if rng.random() < 0.6:
        out["position"] = _one(rng, *choices(cg.intervals, "position", ("narrowest", "classes")))
    if rng.random() < 0.3:
        out["gap"] = _one(rng, 1e-2, 1e-4)
    return out


def _base(rng: Rng, case: Case) -> Any:
    """Return a base that is large enough for the levels, or nearly so; for some tables one per cell."""
    table = case.table
    whole = bool((table.values == np.rint(table.values)).all())
    needs = (need for who in table.attackers for need in list_needs(table, who))
    need = max((float(max(n.lower + n.upper, n.width)) for n in needs), default=0.0)
    base = float(_one(rng, 3, 5, 10))
    if need and rng.random() < 0.8:
        base = need * float(_one(rng, 0.45, 0.6, 1.0, 2.0))
    base = max(1.0, np.ceil(base)) if whole else float(f"{base:.1g}") * 1.5
    if not whole:  # fractional values have no whole base, and a base no more decimals than they
        base = max(0.5, float(np.round(base, 1)))
        base += 0.5 if base == np.rint(base) else 0.0
    if table.fixed.any() and case.decimals is not None and rng.random() < 0.7:
        return np.where(table.fixed, 1.0 if whole else 10.0**-case.decimals, base).tolist()  # they stay as they are
    if rng.random() < 0.1:
        return np.where(np.arange(table.n_cells) < 2, 2 * base, base).tolist()
    return float(base)


def _round(rng: Rng, case: Case) -> dict[str, Any]:
    out: dict[str, Any] = {"base": _base(rng, case), "time_limit_s": LIMIT_S}
    for name, share, values in (
        ("step", 0.3, (1, 2, 3)), ("keep_multiples", 0.3, (True,)), ("max_step", 0.2, (1, 2)), ("gap", 0.2, (0.05,)),
        ("method", 0.2, ("exact", "areas")), ("weights", 0.3, ("unit", "inverse", "table")),
    ):  # fmt: skip
        if rng.random() < share:
            out[name] = _one(rng, *values)
    if case.table.dimensions and rng.random() < 0.1:
        out["keep"] = ["total"]
    if case.table.integer and rng.random() < 0.3:
        out["objective"] = "unbiased"
        if np.isscalar(out["base"]) and ((out["base"] > 60 and rng.random() < 0.9) or out["base"] < 2):
            out["base"] = 5.0
        if np.isscalar(out["base"]) and out["base"] <= 60 and rng.random() < 0.5:
            out["shares_up"] = rng.random(int(out["base"])).tolist()
    return out


def _perturb(rng: Rng, case: Case) -> dict[str, Any]:
    out: dict[str, Any] = {"time_limit_s": LIMIT_S, _one(rng, "base", "distance"): _base(rng, case)}
    if rng.random() < 0.3 and "base" in out:
        out["round_sensitive"] = True
    if rng.random() < 0.3:
        out["draw"] = "nearest"
    open_cells = np.flatnonzero(~case.table.sensitive & ~case.table.fixed)
    if len(open_cells) and rng.random() < 0.05:
        cell = int(rng.choice(open_cells))
        out["given"] = {cell: float(case.table.values[cell])}
    return out


def _adjust(rng: Rng, case: Case) -> dict[str, Any]:
    out: dict[str, Any] = {
        "norm": _one(rng, "l1", "l2", "linf", "l12"),
        "senses": _one(rng, "key", "key", "upper", "lower", "optimal"),
        "time_limit_s": LIMIT_S,
    }
    if rng.random() < 0.5:
        out["repair"] = _one(rng, "senses", "relations")
    if rng.random() < 0.3:
        out["weights"] = _one(rng, "inverse", "unit", "table", "value", "inverse_square", "inverse_sqrt")
    if out["norm"] == "l12" and rng.random() < 0.5:
        out |= {"omega": _one(rng, 0.5, 0.9), "square_weights": "unit", "squares": [0]}
    if rng.random() < 0.2 and (case.table.values == np.rint(case.table.values)).all():
        out["integer"] = _one(rng, True, False) or case.table.integer
    if rng.random() < 0.3:
        out["surplus"] = _one(rng, 0.0, 0.5, 2.0)
    if rng.random() < 0.1:
        out["noise"] = _one(rng, 0.0, 0.01)
    if rng.random() < 0.15 and case.table.dimensions:
        out["keep"] = [_one(rng, "total", case.table.dimensions[0], int(rng.integers(case.table.n_cells)))]
    if rng.random() < 0.2:
        out["gap"] = 1e-2
    if out["senses"] == "key" and rng.random() < 0.2:
        out["max_change"] = _one(rng, 0.1, 1.0)
    return out


_DRAW = {"suppress": _suppress, "intervals": _intervals, "round": _round, "perturb": _perturb, "adjust": _adjust}


def is_randomised(method: str, options: Mapping[str, Any]) -> bool:
    """Say whether a method with these options promises protection by a secret choice."""
    if method == "suppress":
        return options.get("resist") == "matching"
    if method == "round":
        return options.get("objective") in ("unbiased", "coins")
    if method == "intervals":
        return options.get("position", "classes") != "narrowest"
    if method == "perturb":
        return options.get("draw", "random") != "nearest"
    return options.get("senses", "key") == "key" or options.get("surplus") != 0


def draw(method: str, rng: Rng, case: Case) -> dict[str, Any]:
    """Return options of a verb, its key included."""
    number = int(rng.integers(1, 2**31))
    out = {**_DRAW[method](rng, case), "key": cg.Key.from_public_number(number)}
    if method == "adjust" and out["norm"] in ("l1", "linf") and rng.random() < 0.15:
        out["solver"] = "simplex"
    if method == "perturb" and "base" in out and "given" not in out and number % 11 == 0:
        out["between"] = True
    if not is_randomised(method, out):  # a seed that steers the search only
        out["seed"] = number
    known = inspect.signature(VERBS[method]).parameters
    return {name: value for name, value in out.items() if name in known}


def choices(verb: Callable[..., Any], parameter: str, usual: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of an option: what the verb's own hint lists when it is given nonsense."""
    if parameter not in inspect.signature(verb).parameters:
        return usual
    try:
        verb(_ANY, **{parameter: "?"})
    except cg.CellguardError as error:
        named = [w.strip("'.,\"") for w in str(error).split() if w[:1] in "'\""]
        found = tuple(w for w in named if w.isidentifier())
        return found or usual
    return usual


_ANY = cg.Table.from_equations([2, 1, 1], [[0, 1, 2]], sensitive=[1], lower=[1], upper=[1])
