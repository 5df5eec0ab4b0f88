"""Suppression that remembers: earlier releases stay unchanged, and the new one protects all of them.

1. What was published stays published, what was withheld stays withheld, and cells that the preceding release withheld
   are preferred, so that patterns are stable.
2. The pattern is found over the system of all linked releases (:mod:`cellguard.history`).
3. Derived figures that tell too much are coarsened, then withheld: they are cheaper than cells.
4. The joint audit decides. Where earlier releases make protection impossible, they are named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.auditing.audit import audit
from cellguard.history.derived import Derived, Figures
from cellguard.history.earlier import History
from cellguard.history.joint import JointRelease, JointSystem, join_release, join_table
from cellguard.methods.limits import Limits
from cellguard.methods.protection import Protection
from cellguard.model.levels import add_respondents
from cellguard.release.release import Status, Suppression

if TYPE_CHECKING:
    from cellguard.methods.suppress.suppress import SuppressProcedure
    from cellguard.model.table import Table

__all__ = ["suppress_with_history"]

MAX_LOST_DECIMALS = 2
"""A derived figure loses at most this many decimals before it is withheld."""
MAX_ROUNDS = 12
"""Rounds of coarsening before all figures near a disclosure are withheld."""
SHOWN_NAMES = 3


def suppress_with_history(
    table: Table, procedure: SuppressProcedure, limits: Limits, history: History, derived: Sequence[Derived | Figures]
) -> Suppression:
    """Return a release of a table that is safe together with earlier releases and derived figures."""
    given, table = table, add_respondents(procedure.prepare(table))
    system = join_table(table, history)
    joint = _build_joint_table(system)
    blocked = np.flatnonzero(joint.sensitive & system.published)
    release = None if len(blocked) else _search(system, joint, procedure, limits, table)
    if release is not None and release.status is Status.INFEASIBLE:
        blocked = _find_impossible(joint, limits)
    if len(blocked) and not history.accept:
        return _explain_blocked(table, system, blocked)
    if len(blocked):
        joint = _drop_protection(joint, blocked, system.published)
        labels = frozenset(joint.label(int(cell)) for cell in blocked)
        history = replace(history, accepted=history.accepted | labels)
        release = _search(system, joint, procedure, limits, table)
    if release is None or not release.published:
        return cast("Suppression", release)
    made = replace(release, table=given if given.has_public_knowledge else table, earlier=history)
    return _add_figures(made, history, derived, limits)


def _build_joint_table(system: JointSystem) -> Table:
    """Return the system as a table to protect: earlier releases stay unchanged."""
    t, n = system.table, system.n_new
    shown = system.published
    lb, ub = t.lb.copy(), t.ub.copy()
    lb[n:], ub[n:] = np.maximum(lb, system.low)[n:], np.minimum(ub, system.high)[n:]
    fixed = t.fixed | (shown & ~t.sensitive)
    lower = np.minimum(t.lower, np.maximum(t.values - lb, 0.0))
    upper = np.minimum(t.upper, np.maximum(ub - t.values, 0.0))
    changes = {"lb": lb, "ub": ub, "fixed": fixed, "lower": lower, "upper": upper}
    return replace_table(t, sliding=np.minimum(t.sliding, ub - lb), **changes)


def replace_table(table: Table, **changes: FloatArray | BoolArray) -> Table:
    """Return a joint table with some fields changed; its attackers and smallest widths stay."""
    from cellguard.model.levels import get_smallest_widths, keep_level_widths_of_table

    widths = get_smallest_widths(table)
    out = replace(table, **changes)  # type: ignore[arg-type]
    keep_level_widths_of_table(widths, out)
    return out


def _drop_protection(table: Table, cells: IntArray, published: BoolArray) -> Table:
    """Return the table without the protection of cells that are accepted as known; readers have the published ones."""
    gone = np.isin(np.arange(table.n_cells), cells)
    levels = {name: np.where(gone, 0.0, getattr(table, name)) for name in ("lower", "upper", "sliding")}
    return replace_table(table, sensitive=table.sensitive & ~gone, fixed=table.fixed | (gone & published), **levels)


def _search(
    system: JointSystem, joint: Table, procedure: SuppressProcedure, limits: Limits, table: Table
) -> Suppression:
    """Search a pattern over the joint system, and return it for the new table."""
    n = system.n_new
    past = np.arange(joint.n_cells) >= n
    stay = ((system.in_earlier | past) & ~joint.fixed) | system.surplus
    prefer = np.zeros(joint.n_cells, bool)
    prefer[:n] = system.withheld_before & ~joint.sensitive[:n]
    inner = replace(
        procedure, weights=None, must_publish=(), prefer=np.flatnonzero(prefer),
        already_suppressed=np.flatnonzero(stay | _pad(_read_given(procedure, table), joint.n_cells)),
    )  # fmt: skip
    found = cast("Suppression", Protection(procedure=inner, limits=limits).run(joint))
    suppressed = found.suppressed[:n] | table.sensitive
    cost = float(table.weights[suppressed & ~table.sensitive].sum()) if found.published else float("nan")
    return replace(found, table=table, suppressed=suppressed, objective=cost, bound=float("nan"))


def _read_given(procedure: SuppressProcedure, table: Table) -> BoolArray:
    from cellguard.model.parts.cells import mask_cells

    return mask_cells(table, procedure.already_suppressed, "already_suppressed")


def _pad(cells: BoolArray, n: int) -> BoolArray:
    return np.concatenate([cells, np.zeros(n - len(cells), bool)])


# ---------------------------------------------------------------------- what earlier releases make impossible


def _find_impossible(joint: Table, limits: Limits) -> IntArray:
    """Return the cells that stay unsafe even if the new release withholds everything that it may."""
    everything = Suppression.from_file(joint, suppressed=~joint.fixed)
    found = audit(everything, time_limit_s=limits.last_word.get_seconds_at_least())
    return np.unique(np.concatenate([np.zeros(0, np.int64), *(f.cells[f.unsafe] for f in found.findings)]))


def _explain_blocked(table: Table, system: JointSystem, blocked: IntArray) -> Suppression:
    """Return that no release is possible: name the earlier releases, the cells, and what can be done."""
    names = system.name_releases(blocked, ~system.published)
    cells = ", ".join(system.table.label(int(c)) for c in blocked[:SHOWN_NAMES])
    more = f" and {len(blocked) - SHOWN_NAMES} more" if len(blocked) > SHOWN_NAMES else ""
    who = ", ".join(names[-SHOWN_NAMES:]) or "links and derived figures"
    text = (
        f"earlier releases ({who}) already tell too much about {cells}{more}: whatever this release withholds, "
        f"{'they are' if len(blocked) > 1 else 'it is'} not protected. What can be done: lower the protection levels "
        "of these cells; correct the period, population or links if they are wrong; or accept the cells as known "
        "(accept = true), which protects all others."
    )
    return Suppression(
        table=table, status=Status.INFEASIBLE, objective=float("nan"), explanation=text,
        suppressed=table.sensitive.copy(), details={"made_impossible_by": names},
    )  # fmt: skip


# ---------------------------------------------------------------------- derived figures


def _add_figures(
    release: Suppression, history: History, derived: Sequence[Derived | Figures], limits: Limits
) -> Suppression:
    """Return the release with as many derived figures as the audit accepts, or the refusal of the audit."""
    figures = join_release(release, history, derived).system.figures if derived else ()
    for number in range(MAX_ROUNDS + 1):
        found = audit(
            replace(release, figures=figures), earlier=history, exact=False,
            time_limit_s=limits.last_word.get_seconds_at_least(),
        )  # fmt: skip
        unsafe = found.unsafe_cells
        if not len(unsafe):
            return replace(release, figures=figures, details={**release.details, **_describe_figures(figures)})
        left = any((~one.withheld).any() for one in figures)
        if not left:
            break
        figures = _reduce_detail(
            cast("JointRelease", found.release).system, figures, unsafe, withhold=number >= MAX_ROUNDS - 1
        )
    nothing = float("nan")
    why = "the audit with earlier releases did not accept the pattern within the limits."
    return replace(release, status=Status.TIME_LIMIT, objective=nothing, bound=nothing, explanation=why)


def _reduce_detail(
    system: JointSystem, figures: Sequence[Figures], unsafe: IntArray, *, withhold: bool
) -> tuple[Figures, ...]:
    """Return the figures with less detail near the unsafe cells; all of them if none is near."""
    free = ~system.published | system.surplus
    near = system.find_near(unsafe, free)[: system.n_new]
    out, changed = [], False
    for one, telling in zip(figures, system.counts.telling, strict=True):
        mine = near[one.cells] if len(one.cells) == len(one.values) else np.array([near[one.cells].any()])
        which = mine & telling & ~one.withheld
        changed = changed or bool(which.any())
        out.append(one.withhold(which) if withhold else one.round_further(which, MAX_LOST_DECIMALS))
    if not changed:
        return tuple(one.withhold(np.ones(len(one.values), bool)) for one in figures)
    return tuple(out)


def _describe_figures(figures: Sequence[Figures]) -> dict[str, int]:
    """Return how many figures are published, coarser than asked, and withheld."""
    if not figures:
        return {}
    coarser = sum(int(((one.decimals < one.derived.decimals) & ~one.withheld).sum()) for one in figures)
    withheld = sum(int(one.withheld.sum()) for one in figures)
    total = sum(len(one.values) for one in figures)
    return {"derived_published": total - withheld, "derived_coarser": coarser, "derived_withheld": withheld}
