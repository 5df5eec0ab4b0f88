"""From records to a table: aggregated where the records are, margins summed here."""

from cellguard.data.tabulate.verb import tabulate

__all__ = ["tabulate"]
