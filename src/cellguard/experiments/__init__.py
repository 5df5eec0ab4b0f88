"""Every experiment of the papers, reproduced by one command: ``cellguard reproduce NAME``."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from cellguard.exceptions import UnknownCodeError, require_known
from cellguard.experiments._framework import Experiment, Report, Settings, reproduce

__all__ = ["EXPERIMENTS", "Entry", "Experiment", "Report", "Settings", "experiment", "reproduce"]


class Entry(NamedTuple):
    """Where an experiment is, and a line about it that costs no import."""

    module: str
    """Of this package."""
    attribute: str
    """Its name in the module."""
    summary: str
    """What it shows."""
    time: str
    """About how long all of it takes on one core."""


EXPERIMENTS = {
    "adjustment-decimals": Entry(
        "attacks",
        "DECIMALS",
        "What division and the programs of B3 and C give away, before and after grid and surplus.",
        "40 min",
    ),
    "adjustment-knowledge": Entry(
        "attacks",
        "KNOWLEDGE",
        "Scenario B3 by intruders who know less: senses, norm, weights, bounds, which cells are sensitive.",
        "2 h",
    ),
    "baena2018-midpoints": Entry(
        "baena2018",
        "MIDPOINTS",
        "Where the truth lies in the ranges that the audit of a suppression computes: the paper's future work.",
        "4 min",
    ),
    "baena2018-table2": Entry(
        "baena2018",
        "TABLE2",
        "Seconds of suppression, of adjustment with optimal senses, and of HiGHS on the same.",
        "12 min",
    ),
    "baena2018-tables3and4": Entry(
        "baena2018",
        "TABLES3AND4",
        "Cells that interval protection replaces, and where the truth lies in its interval.",
        "15 s",
    ),
    "castro2004-table2": Entry(
        "castro2004", "TABLE2", "L1, L2 and the combined L1-L2 distance: mean percentage deviation and 2-norm.", "30 s"
    ),
    "castro2004-table3": Entry(
        "castro2004", "TABLE3", "Statistics of the deviations for L1, L2 and L-infinity.", "1 min"
    ),
    "castro2012-table1": Entry(
        "castro2012",
        "TABLE1",
        "Dimensions of the instances, and the one-norm of the multipliers of the bounds.",
        "1 min",
    ),
    "castro2012-tables2to9": Entry(
        "castro2012", "TABLES2TO9", "Distribution of the intruder's errors: four scenarios, two norms.", "4 min"
    ),
    "minami2019-figure7": Entry(
        "minami2019_figure7",
        "FIGURE7",
        "Number of candidates by the dimension of the null space: the boxes of figure 7.",
        "3 s",
    ),
    "minami2019-tables2to5": Entry(
        "minami2019",
        "TABLES2TO5",
        "The matching attack on generated frequency tables, and the suppression that resists it.",
        "5 min",
    ),
    "salazar2004-areas": Entry(
        "salazar2004_more",
        "AREAS",
        "The census area by area, without the relations between areas: 17 s in the paper.",
        "30 s",
    ),
    "salazar2004-perturbation": Entry(
        "salazar2004_more",
        "PERTURBATION",
        "Cell perturbation beside rounding: the relaxation costs no more, and where they agree.",
        "5 s",
    ),
    "salazar2004-section5": Entry(
        "salazar2004",
        "SECTION5",
        "Rounding of the geography table, and of the census table that the paper could not round.",
        "2 min",
    ),
    "salazar2004-table1": Entry(
        "salazar2004",
        "TABLE1",
        "Share of cells rounded up, by value: the plain objective is biased, the two-step objective hardly.",
        "1 min",
    ),
    "salazar2004-unbiased": Entry(
        "salazar2004_more",
        "UNBIASED",
        "Rounding towards xi(a), towards phi(a), and by phi(a) alone: bias and additivity.",
        "40 s",
    ),
}
"""Name -> what ``cellguard reproduce --help`` says of it."""


def experiment(name: str) -> Experiment:
    """Return an experiment by its name."""
    require_known("experiment", name, EXPERIMENTS, UnknownCodeError)
    entry = EXPERIMENTS[name]
    found: Experiment = getattr(import_module(f"cellguard.experiments.{entry.module}"), entry.attribute)
    return found
