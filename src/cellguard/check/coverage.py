"""What the word "safe" of an audit covers, in sentences that a lawyer can read; no value, level or name is in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cellguard.data.insiders import can_tell_insiders_shares
from cellguard.nouns.release import Adjustment, Rounding

if TYPE_CHECKING:
    from cellguard.check.audit import Audit

__all__ = ["Coverage", "coverage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The statement that was checked, and what it leaves out."""

    holds: tuple[str, ...]
    """What holds for every sensitive cell, and against whom."""
    left_out: tuple[str, ...]
    """What was not considered."""


def coverage(audit: Audit) -> Coverage:
    """Say what an audit has checked.

    >>> from cellguard.data.examples import salazar2004_figure2
    >>> coverage(salazar2004_figure2()["suppress"].audit()).holds[1]
    'The attacker knows everything that is published, all sums of the table, and how the method works.'
    """
    table = audit.release.table
    respondents = any(f.attacker.derived for f in audit.findings)
    described = sum(not f.attacker.derived for f in audit.findings) - 1
    if isinstance(audit.release, Rounding) and audit.release.keep_multiples:
        kept = "multiples of the base may be published as they are, which the office has chosen."
        holds = [f"No sensitive cell is known exactly, or known more closely than its protection levels; {kept}"]
    elif isinstance(audit.release, Adjustment):
        holds = ["No sensitive cell is published as it is, and each is published at least its protection level away."]
    else:
        closely = "known exactly, or known more closely than its protection levels."
        holds = [f"No sensitive cell is published as it is, {closely}"]
    holds.append("The attacker knows everything that is published, all sums of the table, and how the method works.")
    if audit.integer:
        holds.append("He also knows that only whole numbers are possible.")
    if respondents:
        two = "or one of two, " if can_tell_insiders_shares(table) else ""
        holds.append(f"Attackers are also respondents who are alone in a cell, {two}with all that they gave.")
    if described > 0:
        holds.append("Attackers are also others whose knowledge the office has described.")
    left_out = ["Other releases of the same data: two tables that were protected apart can be subtracted."]
    if not respondents:
        left_out.append(_why_audit_omits_respondents(audit))
    if not audit.integer and not isinstance(audit.release, Adjustment):
        why = "the audit was told so." if table.integer else "the table is not one of counts."
        left_out.append(f"That values may be known to be whole numbers: {why}")
    if respondents and not can_tell_insiders_shares(table):
        left_out.append("Respondents who are one of two in a cell: the table does not know what each of them gave.")
    left_out.append("Respondents who tell each other what they gave, and other knowledge that nobody has described.")
    return Coverage(holds=tuple(holds), left_out=tuple(left_out))


def _why_audit_omits_respondents(audit: Audit) -> str:
    if audit.release.table.insiders is False:
        return "Respondents as attackers: the office has chosen to leave them out."
    if isinstance(audit.release, Adjustment):
        return "Ranges: nothing is published about how far a number is from the truth; the attacks of the manual apply."
    if audit.release.table.insiders:
        return "Nobody: no respondent is alone in a cell, or one of two, in a way that would tell him more."
    return "Respondents as attackers: the table does not know how many contribute to its cells."
