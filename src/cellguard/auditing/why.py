"""Why a release treats a cell as it does: rule, what it protects, against whom, range, what publishing it needs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard.auditing.audit import audit
from cellguard.model.levels import compute_required_levels, list_attackers
from cellguard.model.parts.cells import find_cell

if TYPE_CHECKING:
    from cellguard.release.release import Release

__all__ = ["Why", "explain_cell"]


@dataclass(frozen=True, kw_only=True)
class Why:
    """Why a release treats a cell as it does (confidential)."""

    label: str
    """The cell, by its codes."""
    status: str
    """``sensitive``, ``secondary``, ``fixed`` or ``published``."""
    reasons: tuple[str, ...] = ()
    """The rules that made it sensitive."""
    levels: dict[str, dict[str, float]] = field(default_factory=dict)
    """Attacker -> the levels that the cell must keep."""
    range: tuple[float, float] | None = None
    """What an external attacker can infer; None if the cell is published unchanged."""
    protects: tuple[str, ...] = ()
    """Cells that would no longer be safe if this one were published."""
    against: tuple[str, ...] = ()
    """The attackers who could then infer them."""

    @property
    def needs(self) -> str:
        """What publishing the cell would need."""
        if self.status == "sensitive":
            return "no rule may make it sensitive, or its value must be published less precisely."
        if self.status == "secondary":
            if not self.protects:
                return "nothing: every cell stays safe without it."
            n = len(self.protects)
            cells = "one other cell" if n == 1 else f"{n} other cells"
            return f"{cells} must be protected in another way: must_publish asks for that."
        return "nothing: it is published."

    def __str__(self) -> str:
        lines = [f"{self.label}: {self.status}"]
        lines += [f"  {reason}" for reason in self.reasons]
        lines += [
            f"  against {name}: lower {need['lower']:g}, upper {need['upper']:g}, width {need['sliding']:g}"
            for name, need in self.levels.items()
        ]
        if self.range is not None:
            lines.append(f"  an external attacker finds it between {self.range[0]:g} and {self.range[1]:g}")
        if self.protects:
            more = f" and {len(self.protects) - 5} more" if len(self.protects) > 5 else ""
            lines.append(f"  protects {', '.join(self.protects[:5])}{more} against {', '.join(self.against[:3])}")
        return "\n".join([*lines, f"  to publish it: {self.needs}"])


def explain_cell(release: Release, cell: Any) -> Why:
    """Explain one cell of a release.

    >>> import cellguard as cg
    >>> table = cg.Table.from_leaves({"region": ["N", "S"], "sex": ["f", "m"]}, [[9, 8], [7, 6]])
    >>> release = cg.suppress(table.apply(cg.Manual([4])), time_limit_s=1)
    >>> print(explain_cell(release, ("N", "m")).protects)
    ('(region=N, sex=f)',)
    """
    table = release.table
    place = find_cell(table, cell)
    withheld = bool(release.withheld[place])
    sensitive = bool(table.sensitive[place])
    status = "sensitive" if sensitive else "secondary" if withheld else "fixed" if table.fixed[place] else "published"
    levels = {}
    for attacker in list_attackers(table):
        need = compute_required_levels(table, attacker)
        for at in np.flatnonzero(need.cells == place).tolist():
            levels[attacker.name] = {name: float(getattr(need, name)[at]) for name in ("lower", "upper", "sliding")}
    known = bool(table.fixed[place]) or (release.withholds_cells and not withheld)
    protects, against = _find_protected(release, place) if status == "secondary" else ((), ())
    return Why(
        label=table.label(place), status=status, reasons=table.reasons(place), levels=levels, protects=protects,
        against=against, range=None if known else release.audit().range(place),
    )  # fmt: skip


def _find_protected(release: Release, cell: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the cells that are no longer safe if one is published, and against whom."""
    pattern = release.withheld.copy()
    pattern[cell] = False
    found = audit(replace(release, suppressed=pattern))  # type: ignore[call-arg]  # only patterns withhold cells
    against = tuple(f.attacker.name for f in found.findings if not f.safe.all())
    return tuple(release.table.label(int(other)) for other in found.unsafe_cells), against
