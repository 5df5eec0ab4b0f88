"""Every experiment of the papers, reproduced by one command: ``cellguard reproduce NAME``."""

from __future__ import annotations

from importlib import import_module

from cellguard.exceptions import UnknownCodeError, did_you_mean
from cellguard.experiments._framework import Experiment, Report, Settings, reproduce

__all__ = ["EXPERIMENTS", "Experiment", "Report", "Settings", "experiment", "reproduce"]

EXPERIMENTS = {
    "adjustment-decimals": ("attacks", "DECIMALS"),
    "adjustment-knowledge": ("attacks", "KNOWLEDGE"),
    "baena2018-midpoints": ("baena2018", "MIDPOINTS"),
    "baena2018-table2": ("baena2018", "TABLE2"),
    "baena2018-tables3and4": ("baena2018", "TABLES3AND4"),
    "castro2004-table2": ("castro2004", "TABLE2"),
    "castro2004-table3": ("castro2004", "TABLE3"),
    "castro2012-table1": ("castro2012", "TABLE1"),
    "castro2012-tables2to9": ("castro2012", "TABLES2TO9"),
    "minami2019-tables2to5": ("minami2019", "TABLES2TO5"),
    "salazar2004-section5": ("salazar2004", "SECTION5"),
    "salazar2004-table1": ("salazar2004", "TABLE1"),
}
"""Name -> module of this package and the experiment in it."""


def experiment(name: str) -> Experiment:
    """Return an experiment by its name."""
    if name not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise UnknownCodeError(
            f"experiment {name!r} is not known; known are {known}.", hint=did_you_mean(name, EXPERIMENTS)
        )
    module, attribute = EXPERIMENTS[name]
    found: Experiment = getattr(import_module(f"cellguard.experiments.{module}"), attribute)
    return found
