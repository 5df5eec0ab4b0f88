"""castro2004: minimum-distance perturbation of CSPLIB tables (tables 2 and 3)."""

from __future__ import annotations

import time
from collections.abc import Callable

from cellguard.methods.adjust.adjust import PLAIN, adjust
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

__all__ = ["TABLE2", "TABLE3"]

_MEASURES = ("abs_mean", "abs_std", "abs_max", "pct_mean", "pct_std", "pct_max", "norm2")
_PRINTED_SECONDS = {"interior": "interior_point_cpu_s", "simplex": "simplex_cpu_s"}
_INSTANCES = ("bts4", "hier13", "hier16", "nine12", "nine5d", "ninenew", "two5in6")


def _list_units(norms: tuple[str, ...]) -> Callable[[Settings], Units]:
    def build_units(settings: Settings) -> Units:
        instances, skipped = select_instances(_INSTANCES, settings)
        work = [{"instance": name, "norm": norm} for name in instances for norm in norms]
        return [Unit(key=f"{w['instance']} {w['norm']}", work=w) for w in work], skipped

    return build_units


def _list_table3_units(settings: Settings) -> Units:
    """Return the units of table 3, with two solvers where possible: squares need the interior-point solver."""
    units, skipped = _list_units(("l1", "l2", "linf"))(settings)
    again = [
        Unit(key=f"{unit.key} simplex", work={**unit.work, "solver": "simplex"})
        for unit in units
        if unit.work["norm"] != "l2"
    ]
    return [*units, *again], skipped


def _run_castro2004_norm(work: Figures) -> Figures:
    table = read_csplib_table(work["instance"])
    begin = time.process_time()
    release = adjust(table, norm=work["norm"], solver=work.get("solver", "interior"), **PLAIN)
    return {"cpu_s": time.process_time() - begin, "status": str(release.status), "loss": release.loss()}


def _compare_table3(done: Done) -> list[Figures]:
    out = []
    results = {(w["instance"], w["norm"], w.get("solver", "interior")): result for w, result in done}
    for figures in read_paper_figures("castro2004-table3"):
        norm = {"L1": "l1", "L2": "l2"}.get(figures["norm"], "linf")
        for solver, printed in _PRINTED_SECONDS.items():
            found = results.get((figures["instance"], norm, solver))
            if found is None:
                continue
            loss = found["loss"][figures["cells"]]
            where = {"instance": figures["instance"], "norm": norm, "cells": figures["cells"], "solver": solver}
            out += [compare_with_paper(m, loss[m], figures[m], **where) for m in _MEASURES]
            if figures["cells"] == "all":
                out.append(compare_with_paper("cpu_s", found["cpu_s"], figures.get(printed), **where))
    return out


def _compare_table2(done: Done) -> list[Figures]:
    out = []
    results = group_results(done, "instance", "norm")
    for figures in read_paper_figures("castro2004-table2"):
        for norm in (norm for norm in ("l1", "l2", "l12") if (figures["instance"], norm) in results):
            found = results[figures["instance"], norm]
            loss = found["loss"]["all"]
            ours = {"pct_dev": loss["pct_mean"], "norm2": loss["norm2"], "cpu_s": found["cpu_s"]}
            where = {"instance": figures["instance"], "norm": norm}
            out += [
                compare_with_paper(what, figure, figures[f"{norm}_{what}"], **where) for what, figure in ours.items()
            ]
    return out


TABLE2 = Experiment(
    name="castro2004-table2",
    units=_list_units(("l1", "l2", "l12")),
    run=_run_castro2004_norm,
    rows=_compare_table2,
    remark="The L2 and L1-L2 optima are unique. Of L1 only the mean percentage deviation (its objective) is: the "
    "2-norm depends on which of the optima the solver ends at.",
)
TABLE3 = Experiment(
    name="castro2004-table3",
    units=_list_table3_units,
    run=_run_castro2004_norm,
    rows=_compare_table3,
    remark="The L2 optimum is unique: every printed digit must come out. Of L1 only the mean percentage deviation over "
    "all cells, and of L-infinity only the largest percentage deviations, are determined by the problem: the others "
    "depend on the solver. 'simplex' solves (4) and (6) as printed by HiGHS, 'interior' the reduced problem.",
)
