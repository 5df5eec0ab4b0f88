"""castro2004: minimum-distance perturbation of CSPLIB tables (tables 2 and 3)."""

from __future__ import annotations

import time
from collections.abc import Callable

from cellguard.experiments._csplib import csplib_instances, csplib_table
from cellguard.experiments._framework import (
    Done,
    Experiment,
    Figures,
    Settings,
    Unit,
    Units,
    figures_of_paper,
    results_by_experiment_unit,
    row_beside_paper,
)
from cellguard.methods.adjust.verb import PLAIN, adjust

__all__ = ["TABLE2", "TABLE3"]

_MEASURES = ("abs_mean", "abs_std", "abs_max", "pct_mean", "pct_std", "pct_max", "norm2")
_INSTANCES = ("bts4", "hier13", "hier16", "nine12", "nine5d", "ninenew", "two5in6")


def _units_of_castro2004(norms: tuple[str, ...]) -> Callable[[Settings], Units]:
    def units(settings: Settings) -> Units:
        instances, skipped = csplib_instances(_INSTANCES, settings)
        work = [{"instance": name, "norm": norm} for name in instances for norm in norms]
        return [Unit(key=f"{w['instance']} {w['norm']}", work=w) for w in work], skipped

    return units


def _run_castro2004_norm(work: Figures) -> Figures:
    table = csplib_table(work["instance"])
    begin = time.process_time()
    release = adjust(table, norm=work["norm"], **PLAIN)
    return {"cpu_s": time.process_time() - begin, "status": str(release.status), "loss": release.loss()}


def _table3_beside_paper(done: Done) -> list[Figures]:
    out = []
    results = results_by_experiment_unit(done, "instance", "norm")
    for figures in figures_of_paper("castro2004-table3"):
        norm = {"L1": "l1", "L2": "l2"}.get(figures["norm"], "linf")
        if (figures["instance"], norm) in results:
            loss = results[figures["instance"], norm]["loss"][figures["cells"]]
            where = {"instance": figures["instance"], "norm": norm, "cells": figures["cells"]}
            out += [row_beside_paper(m, loss[m], figures[m], **where) for m in _MEASURES]
    return out


def _table2_beside_paper(done: Done) -> list[Figures]:
    out = []
    results = results_by_experiment_unit(done, "instance", "norm")
    for figures in figures_of_paper("castro2004-table2"):
        for norm in (norm for norm in ("l1", "l2", "l12") if (figures["instance"], norm) in results):
            found = results[figures["instance"], norm]
            loss = found["loss"]["all"]
            ours = {"pct_dev": loss["pct_mean"], "norm2": loss["norm2"], "cpu_s": found["cpu_s"]}
            where = {"instance": figures["instance"], "norm": norm}
            out += [row_beside_paper(what, figure, figures[f"{norm}_{what}"], **where) for what, figure in ours.items()]
    return out


TABLE2 = Experiment(
    name="castro2004-table2",
    units=_units_of_castro2004(("l1", "l2", "l12")),
    run=_run_castro2004_norm,
    rows=_table2_beside_paper,
    remark="The L2 and L1-L2 optima are unique. Of L1 only the mean percentage deviation (its objective) is: the "
    "2-norm depends on which of the optima the solver ends at.",
)
TABLE3 = Experiment(
    name="castro2004-table3",
    units=_units_of_castro2004(("l1", "l2", "linf")),
    run=_run_castro2004_norm,
    rows=_table3_beside_paper,
    remark="The L2 optimum is unique: every printed digit must come out. Of L1 only the mean percentage deviation over "
    "all cells, and of L-infinity only the largest percentage deviations, are determined by the problem.",
)
