"""Derive every attacker of a table: the one place where respondents become attackers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cellguard.attackers.public import add_public_knowledge
from cellguard.attackers.respondents import can_tell_counts, with_insiders

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = ["derive_attackers"]


def derive_attackers(table: Table) -> Table:
    """Return the table with all prior knowledge of attackers: the rules of publication, and their contributions.

    Every attacker knows what follows from the rules of publication (:mod:`cellguard.attackers.public`). If the
    table knows its contributors, they are attackers too, unless the user excludes them. A contributor alone in a
    cell knows its value; every other contributor knows at least their own part. All methods and the audit call this
    first, so that the audit accepts what a method returns as success.
    """
    table = add_public_knowledge(table)
    found = any(attacker.derived for attacker in table.attackers)
    if table.insiders is False or found or not table.sensitive.any():
        return table
    return with_insiders(table) if can_tell_counts(table) else table
