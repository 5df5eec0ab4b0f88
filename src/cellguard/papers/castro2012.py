"""castro2012: how much an informed attacker learns from adjusted tables (tables 1 to 9)."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product

import numpy as np
from scipy.sparse import hstack

from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.solvers.lp import LinearModel, LinearProgram, Way
from cellguard.attacks.scenarios import CLASSES, attack
from cellguard.exceptions import InputError
from cellguard.methods.adjust.adjust import PLAIN, adjust
from cellguard.methods.adjust.sensitivity import compute_sensitivity
from cellguard.model.table import Table
from cellguard.model.weights import compute_weights
from cellguard.papers._csplib import read_csplib_table, select_instances
from cellguard.papers._framework import (
    Done,
    Experiment,
    Figures,
    Settings,
    Unit,
    Units,
    compare_with_paper,
    group_results,
    read_paper_figures,
)
from cellguard.release.release import Adjustment

__all__ = ["TABLE1", "TABLES2TO9"]

_INSTANCES = tuple(figures["instance"] for figures in read_paper_figures("castro2012-table1"))
_SCENARIOS = ("B1", "B2", "B3", "C")
"""The scenarios of the paper."""
_OPTIONS = {"level_error": 0.30, "levels_around": "guess", "level_in_c": "by norm"}
"""The reading that fits the printed tables. The paper prints Delta = 0.2; its B2 rows come out with 0.30 (mean distance
2.5 points over five instances, 6 at 0.28 and 10 at 0.32). It prints levels as shares of x; around x~ they fit better.
In scenario C the level is the lower one for L1, although the sense is "upper", and the upper one for L2: of table7, the
only table in which they differ much, 0% and 82.9% come within 5% so (printed 0 and 64.2)."""
_LEVELS_IN_C = ("by norm", "lower", "upper")
_WEIGHTS = {"l1": "inverse", "l2": "inverse_square"}


def _adjust_as_in_paper(table: Table, norm: str) -> Adjustment:
    return adjust(table, norm=norm, weights=_WEIGHTS[norm], **PLAIN)


def _list_table1_units(settings: Settings) -> Units:
    instances, skipped = select_instances(_INSTANCES, settings)
    work = [{"instance": name, "norm": norm} for name in instances for norm in ("l1", "l2")]
    return [Unit(key=f"{w['instance']} {w['norm']}, counted", work=w) for w in work], skipped


def _run_castro2012_table1(work: Figures) -> Figures:
    table = read_csplib_table(work["instance"])
    begin = time.process_time()
    release = _adjust_as_in_paper(table, work["norm"])
    cpu = time.process_time() - begin
    return {
        "cpu_s": cpu,
        "status": str(release.status),
        "mu_norm1": _measure_l1_multipliers(table) if work["norm"] == "l1" else _measure_l2_multipliers(table, release),
        "mu_of_bounds": compute_sensitivity(release).norm1,
        "n": table.n_cells,
        "s": int(table.sensitive.sum()),
        "m": table.n_relations,
        "nz": int(table.relations.nnz),
    }


def _measure_l1_multipliers(table: Table) -> float:
    """Return the one-norm of those multipliers of the split problem (6) that fit table 1.

    Of ``z+ >= upl``, and of every upper bound of z+ and z-: of halves and cells that are fixed at 0 too,
    but not of the signs ``z+ >= 0`` and ``z- >= 0``. A cell of 0 costs nothing. They depend on the vertex
    of the dual at which a solver ends; this one is of HiGHS with presolve.
    """
    t, s = table, table.sensitive
    free = ~t.fixed
    weight = np.where(t.values == 0, 0.0, compute_weights("inverse", t.values))
    lower = np.concatenate([np.where(s, t.upper, 0.0), np.zeros(t.n_cells)])
    upper = np.concatenate([np.where(free, t.ub - t.values, 0.0), np.where(free & ~s, t.values - t.lb, 0.0)])
    split = hstack([t.relations, -t.relations])
    cost = np.concatenate([weight, weight])
    way = Way(simplex="dual", presolve=True, tolerance=1e-7)
    found = LinearProgram(LinearModel(split, 0.0, 0.0, lower, upper, cost), way).solve()
    levels = np.concatenate([s, np.zeros(t.n_cells, bool)])
    return float(np.maximum(found.reduced_cost, 0.0)[levels].sum() - np.minimum(found.reduced_cost, 0.0).sum())


def _measure_l2_multipliers(table: Table, release: Adjustment) -> float:
    """Return the one-norm of the multipliers of all bounds except levels: known bounds, and cells fixed at 0.

    The multipliers of fixed cells are one choice of infinitely many: they follow from those of independent relations.
    """
    found = release.internal
    at_bounds = (found["lower_multiplier"] + found["upper_multiplier"])[~table.sensitive].sum()
    gradient = 2.0 * found["square_weight"] * (release.values - table.values)
    force = gradient - found["lower_multiplier"] + found["upper_multiplier"]  # of the relations, where cells move
    y = Adjuster(table.relations, table.fixed).find_multipliers(np.where(table.fixed, 0.0, force))
    return float(at_bounds + np.abs(table.relations.T @ y)[table.fixed & ~table.sensitive].sum())


def _compare_table1(done: Done) -> list[Figures]:
    out = []
    results = group_results(done, "instance", "norm")
    for figures in read_paper_figures("castro2012-table1"):
        for norm in (norm for norm in ("l1", "l2") if (figures["instance"], norm) in results):
            found = results[figures["instance"], norm]
            where = {"instance": figures["instance"], "norm": norm}
            if norm == "l1":
                out += [compare_with_paper(size, found[size], figures[size], **where) for size in ("n", "s", "m", "nz")]
            out.append(compare_with_paper("mu_norm1", found["mu_norm1"], figures[f"{norm}_mu_norm1"], **where))
            out.append(compare_with_paper("mu_norm1, all bounds of (4)", found["mu_of_bounds"], None, **where))
    return out


def _list_scenario_units(settings: Settings) -> Units:
    instances, skipped = select_instances(_INSTANCES, settings)
    if settings.options["level_in_c"] not in _LEVELS_IN_C:
        raise InputError(f"option level_in_c: {settings.options['level_in_c']!r} is none of {', '.join(_LEVELS_IN_C)}.")
    changed = [f"{name}={value}" for name, value in settings.options.items() if value != _OPTIONS[name]]
    n = settings.replications or 10
    how: Figures = {"seed": settings.seed, "replications": n, "options": dict(settings.options)}
    return [
        Unit(
            key=" ".join([name, norm, scenario, str(n), str(settings.seed), *changed]),
            work={"instance": name, "norm": norm, "scenario": scenario, **how},
        )
        for name, norm, scenario in product(instances, ("l1", "l2"), _SCENARIOS)
    ], skipped


_LAST: dict[tuple[str, str], Adjustment] = {}
"""Return the adjusted table, cached because the next scenario attacks it too."""


def _run_castro2012_scenario(work: Figures) -> Figures:
    instance, norm = work["instance"], work["norm"]
    begin = time.process_time()
    if (instance, norm) not in _LAST:
        _LAST.clear()
        _LAST[instance, norm] = _adjust_as_in_paper(read_csplib_table(instance), norm)
    release = _LAST[instance, norm]
    options = dict(work["options"])
    level = options.pop("level_in_c")
    if work["scenario"] == "C" and level in ("lower", "by norm" if norm == "l1" else ""):
        table = release.table.with_(upper=np.minimum(release.table.upper, release.table.lower))
        release = replace(release, table=table)
    found = attack(release, work["scenario"], replications=work["replications"], seed=work["seed"], **options)
    cpu = time.process_time() - begin
    return {"cpu_s": cpu, "distribution": list(found.distribution.values()), "sensitive": len(found.cells)}


def _compare_tables_2_to_9(done: Done) -> list[Figures]:
    out = []
    results = group_results(done, "scenario", "norm", "instance")
    for figures in read_paper_figures("castro2012-tables2to9"):
        key = scenario, norm, instance = figures["scenario"], figures["norm"].lower(), figures["instance"]
        if key in results:
            where = {"table": figures["table"], "scenario": scenario, "norm": norm, "instance": instance}
            shares = zip(CLASSES, results[key]["distribution"], figures["distribution"], strict=True)
            out += [compare_with_paper(name, ours, paper, **where) for name, ours, paper in shares]
    return out


TABLE1 = Experiment(
    name="castro2012-table1",
    units=_list_table1_units,
    run=_run_castro2012_table1,
    rows=_compare_table1,
    remark="L1: the multipliers of the split problem (6) of z+ >= upl and of all upper bounds, fixed halves and fixed "
    "cells included, without the signs; zeros cost nothing. That gives seven of the printed sums to 3%; they are the "
    "solver's choice among optimal multipliers, and too low where many zeros are fixed. L2: all bounds but the "
    "levels, which is 0 where no cell is fixed, as printed. 'all bounds of (4)' are the multipliers of problem (4), "
    "certified by a dual bound: the measure of theorem 1.",
)
TABLES2TO9 = Experiment(
    name="castro2012-tables2to9",
    units=_list_scenario_units,
    run=_run_castro2012_scenario,
    rows=_compare_tables_2_to_9,
    options=_OPTIONS,
    remark="Read as follows, which fits the printed L1 tables best: guesses within beta, the largest relative "
    "deviation of a sensitive cell; levels drawn around the guess with Delta = 0.30 (0.2 is printed); all bounds soft "
    "in B1 and B2, with one price per unit; in scenario C the lower level (L1) or the upper (L2). With L2, B3 and C "
    "come out more exact than printed. For most instances the first two classes together agree: whether an estimate "
    "is called exact is a matter of the tolerance. For table1, table7, toy3dsarah and, in B3, osorio and targus that "
    "does not explain it. Nor do few draws explain targus in B2: eight seeds agree with each other and not with the "
    "paper.",
)
