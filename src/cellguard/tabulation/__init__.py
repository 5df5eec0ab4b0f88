"""Make tables from records: the database aggregates the records, and margins are summed here."""

from cellguard.tabulation.tabulate import tabulate

__all__ = ["tabulate"]
