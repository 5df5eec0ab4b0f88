"""Reproduce the experiments of the papers: ``cellguard reproduce NAME``."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from cellguard.exceptions import UnknownCodeError, raise_if_unknown
from cellguard.papers._framework import Experiment, Report, Settings, reproduce

__all__ = ["EXPERIMENTS", "Entry", "Experiment", "Report", "Settings", "get_experiment", "reproduce"]


class Entry(NamedTuple):
    """A description of an experiment that needs no import; its name gives the module and the experiment."""

    time: str
    """Approximate time of the whole experiment on one core."""
    summary: str
    """What it shows."""


EXPERIMENTS = {
    "adjustment-decimals": Entry(
        "40 min", "What division and the programs of B3 and C reveal, before and after grid and surplus."
    ),
    "adjustment-knowledge": Entry(
        "2 h", "Scenario B3 by intruders who know less: senses, norm, weights, bounds, which cells are sensitive."
    ),
    "baena2018-midpoints": Entry(
        "4 min", "Where the truth lies in the ranges that the audit of a suppression computes: the paper's future work."
    ),
    "baena2018-table2": Entry(
        "12 min", "Seconds of suppression, of adjustment with optimal senses, and of HiGHS on the same."
    ),
    "baena2018-tables3and4": Entry(
        "15 s", "Cells that interval protection replaces, and where the truth lies in its interval."
    ),
    "castro2004-table2": Entry("30 s", "L1, L2 and the combined L1-L2 distance: mean percentage deviation and 2-norm."),
    "castro2004-table3": Entry(
        "3 min", "Statistics of the deviations for L1, L2 and L-infinity; seconds of interior point and simplex."
    ),
    "castro2012-table1": Entry(
        "1 min", "Dimensions of the instances, and the one-norm of the multipliers of the bounds."
    ),
    "castro2012-tables2to9": Entry("4 min", "Distribution of the intruder's errors: four scenarios, two norms."),
    "minami2019-figure7": Entry(
        "3 s", "Number of candidates by the dimension of the null space: the boxes of figure 7."
    ),
    "minami2019-tables2to5": Entry(
        "5 min", "The matching attack on generated frequency tables, and the suppression that resists it."
    ),
    "resistance-possible": Entry(
        "1 min", "How many tables that resistant suppression calls possible are ever drawn, and what they are worth."
    ),
    "salazar2004-areas": Entry(
        "30 s", "The census area by area, without the relations between areas: 17 s in the paper."
    ),
    "salazar2004-perturbation": Entry(
        "5 s", "Cell perturbation beside rounding: the relaxation costs no more, and where they agree."
    ),
    "salazar2004-section5": Entry(
        "2 min", "Rounding of the geography table, and of the census table that the paper could not round."
    ),
    "salazar2004-table1": Entry(
        "1 min", "Share of cells rounded up, by value: the plain objective is biased, the two-step objective hardly."
    ),
    "salazar2004-unbiased": Entry(
        "40 s", "Rounding towards xi(a), towards phi(a), and by phi(a) alone: bias and additivity."
    ),
}
"""Name -> its description in ``cellguard reproduce --help``."""


def get_experiment(name: str) -> Experiment:
    """Return an experiment by its name."""
    raise_if_unknown("experiment", name, EXPERIMENTS, UnknownCodeError)
    module, _, called = name.partition("-")
    found: Experiment = getattr(import_module(f"cellguard.papers.{module}"), called.upper())
    return found
