"""What "safe" means in an audit, in sentences that a lawyer can read; without any value, level or name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cellguard.attackers.respondents import can_tell_shares

if TYPE_CHECKING:
    from cellguard.auditing.audit import Audit

__all__ = ["Coverage", "summarize_coverage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The statement that was checked, and what it leaves out."""

    holds: tuple[str, ...]
    """What holds for every sensitive cell, and against which attackers."""
    left_out: tuple[str, ...]
    """What was not considered."""


def summarize_coverage(audit: Audit) -> Coverage:
    """State what an audit has checked.

    >>> from cellguard.datasets.examples import salazar2004_figure2
    >>> summarize_coverage(salazar2004_figure2()["suppress"].audit()).holds[1]
    'The attacker knows everything that is published, all sums of the table, and how the method works.'
    """
    table = audit.release.table
    respondents = any(f.attacker.derived for f in audit.findings)
    described = sum(not f.attacker.derived for f in audit.findings) - 1
    holds = [audit.release.describe_safety()]
    holds.append("The attacker knows everything that is published, all sums of the table, and how the method works.")
    if audit.integer:
        holds.append("The attacker also knows that only whole numbers are possible.")
    if respondents:
        if can_tell_shares(table):
            holds.append(
                "Attackers include all contributors, each with what they gave to every cell to which they contribute."
            )
        else:
            holds.append("Attackers include contributors who are alone in a cell.")
    if described > 0:
        holds.append("Attackers include further people whose knowledge the office has described.")
    left_out = ["Other releases of the same data: two tables that were protected separately can be subtracted."]
    if not respondents:
        left_out.append(_explain_omitted_respondents(audit))
    if not audit.integer and audit.release.by_ranges:
        why = "the user chose to leave this out." if table.integer else "the table is not one of counts."
        left_out.append(f"That values may be known to be whole numbers: {why}")
    if respondents and not can_tell_shares(table):
        left_out.append("Contributors to cells with several of them: the table does not say what each gave.")
    left_out.append("Respondents who tell each other what they gave, and knowledge that the office has not described.")
    return Coverage(holds=tuple(holds), left_out=tuple(left_out))


def _explain_omitted_respondents(audit: Audit) -> str:
    if audit.release.table.insiders is False:
        return "Respondents as attackers: the office has chosen to leave them out."
    if not audit.release.by_ranges:
        return "Ranges: the distance of a number from the truth is not published. The manual describes attacks."
    if audit.release.table.insiders:
        return "Respondents as attackers: none knows more about a cell that may be withheld than the external attacker."
    return "Respondents as attackers: the table does not say how many contribute to its cells."
