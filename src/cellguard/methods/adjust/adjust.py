"""The function `adjust`: from options to an :class:`~cellguard.release.adjustment.Adjustment`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.numbers.decimals import find_decimal_unit
from cellguard.exceptions import InputError, UnknownCodeError, raise_if_unknown
from cellguard.methods.adjust import METHOD
from cellguard.methods.adjust.norms import build_distance
from cellguard.methods.adjust.senses import needs_of_adjustment
from cellguard.methods.adjust.solve import adjust_with_given_senses, adjust_with_key_senses, adjust_with_optimal_senses
from cellguard.methods.adjust.task import Task, build_empty_release
from cellguard.methods.adjust.unchanged import explain_unchanged_cells
from cellguard.methods.keys import refuse_seed_as_secret, take_key
from cellguard.methods.limits import DEFAULT_TIME_LIMIT_S, Limits, Progress
from cellguard.methods.procedure import Candidate, Problem, Procedure
from cellguard.methods.protection import Protection
from cellguard.model.kept import Keep, find_kept_cells
from cellguard.model.key import Key, KeyGiven
from cellguard.model.table import Table
from cellguard.release.release import Adjustment

if TYPE_CHECKING:
    from cellguard.methods.method import Method
    from cellguard.model.linked.clusters import Keeper
    from cellguard.model.linked.publication import Publication

__all__ = ["PLAIN", "AdjustProcedure", "adjust"]

PLAIN: dict[str, Any] = {"senses": "upper", "surplus": 0.0, "integer": False}
"""Options that reproduce the papers' tables: known senses, exactly at the levels, any numbers. Not for publication."""


def adjust(
    table: Table | Publication,
    *,
    norm: str = "l1",
    weights: str | ArrayLike = "inverse",
    senses: str | ArrayLike = "key",
    surplus: float = 1.0,
    max_change: float | None = 0.5,
    noise: float = 0.0,
    omega: float = 0.99,
    squares: str | ArrayLike | None = None,
    square_weights: str | ArrayLike | None = None,
    integer: bool | None = None,
    keep: Iterable[Keep] = (),
    repair: str | None = "senses",
    solver: str = "interior",
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    gap: float = 1e-3,
    seed: int | None = None,
    key: KeyGiven | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    keeper: Keeper | None = None,
    insiders: bool | None = None,
) -> Adjustment:
    """Find the closest additive table in which every sensitive cell is at least its level away from the truth.

    Parameters
    ----------
    table
        The table to protect.
    norm
        How distance is measured: ``l1`` the sum of weighted changes, ``l2`` of weighted squares,
        ``linf`` the largest weighted change of the sensitive cells plus that of the others, ``l12``
        a mixture of the first two (castro2004 (4), (5), (6), (10)).
    weights
        One number per cell, or a kind: ``inverse`` (1/value; 1 where it is 0), ``inverse_square``,
        ``inverse_sqrt``, ``unit``, ``value``, ``table`` (the table's own), ...
    senses
        Which way sensitive cells go: ``key`` (by a hash of the cell's contributors or coordinates and `key` where
        that hardly matters, and as keeps the table close elsewhere; ``details["bits"]`` says how much is secret),
        ``upper``, ``lower``, ``optimal`` (the senses that make the table closest, baena2018 (6)), or an array of 1 (up)
        and -1 (down), one per sensitive cell or one per cell. Named senses are reversed if a cell has no slack for
        its distance (:func:`cellguard.model.levels.compute_movement_levels`), or a level on the other side only.
    surplus
        How much further than necessary sensitive cells go, by chance: the range of an informed attacker is this
        many times as wide as both levels together. 0 stops exactly at the levels, as in the papers, which
        discloses the true values to an attacker who knows the levels.
    max_change
        Largest change of a cell that is not sensitive, as a share of its value, margins included. Where no table is
        within the limit, it is relaxed and `explanation` says so. None sets no limit. For senses by key only: given
        and optimal senses have none.
    noise
        Share of its value by which a random step may move a cell, on top of the closest table and within
        all levels and bounds; several steps may add up. A defence that costs as much as it moves.
    omega
        Share of the absolute changes in ``l12``; the squares get the rest.
    squares
        Cells whose squares count in ``l12``: ``all`` (default), ``inner``, ``margins``, ``sensitive``, indices or
        truth values. With the margins and a large weight, totals stay nearly unchanged (castro2004 section 5).
    square_weights
        Weights of the squares in ``l12``; by default `weights`.
    integer
        True publishes whole numbers, False any numbers; by default, multiples of the finest decimal
        unit of the true values (1, 0.01, 1000, ...): other numbers would reveal which cells moved.
    keep
        Totals and margins that stay unchanged: ``"total"``, a dimension or several (the margin of
        these, without its sensitive cells), a cell's codes or its index.
    repair
        What to do if no table fits the senses: ``senses`` flips a few of them; ``relations`` lets fixed cells
        change at a large price, then totals exceed their known bounds; None does nothing.
    solver
        What finds the closest table: ``interior``, the interior point of the reduced problem, or ``simplex`` for l1
        and linf, which is slower and may end at another of several closest tables (castro2004 table 3).
    time_limit_s, gap
        When the search for optimal senses or whole numbers stops: after this many seconds, or when
        proven this close to the best.
    seed
        Steers the search for optimal senses, and reveals nothing. Refused where senses, surplus or noise are
        drawn: a seed is not a secret.
    key
        The secret of the senses by key, of the surplus and of the noise: a :class:`cellguard.Key`, at least 16 bytes,
        or the file that holds them. By default drawn from the operating system; ``options["key"]`` has it. The
        same key gives the same release.
    threads
        Accepted by every method; this one uses one thread.
    progress
        Called with the distance and its proven bound when there is a table.
    keeper
        Keeps the release of each cluster of a publication when it is finished
        (:class:`cellguard.model.linked.clusters.Keeper`).
    insiders
        Whether respondents are attackers too: True, False, or as the table says (`Table.insiders`).

    Returns
    -------
    Adjustment
        Optimal when an independent check has proven it the closest with its senses and surplus;
        infeasible, with an explanation that names the relations and cells in conflict, when there is none.

    Examples
    --------
    Figure 3 of castro2004: a total of two cells must rise by four.

    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([12, 8, 20], [[2, 0, 1]], sensitive=[2], upper=[4], lower=[4])
    >>> cg.adjust(table, norm="l2", senses="upper", surplus=0, integer=False).values.round(6).tolist()
    [14.4, 9.6, 24.0]
    >>> cg.adjust(table, norm="l2", senses="upper", surplus=0).values.tolist()
    [14.0, 10.0, 24.0]
    >>> cg.adjust(table).audit().safe  # a key is drawn
    True
    """
    procedure = AdjustProcedure(
        norm=METHOD.match_choice("norm", norm), weights=weights, senses=METHOD.match_choice("senses", senses),
        surplus=surplus, max_change=max_change, noise=noise, omega=omega,
        squares=METHOD.match_choice("squares", squares),
        square_weights=square_weights, integer=integer, keep=tuple(keep),
        on_conflict=METHOD.match_choice("repair", repair), solver=METHOD.match_choice("solver", solver),
        key=take_key(key),
    )  # fmt: skip
    refuse_seed_as_secret(METHOD, {"seed": seed, **vars(procedure)})
    limits = Limits(
        time_limit_s=time_limit_s,
        gap=_adjust_share(gap, "gap"),
        seed=int(seed or 0),
        threads=threads,
        progress=progress,
    )
    release = Protection(procedure=procedure, limits=limits, keeper=keeper, insiders=insiders).run(table)
    return cast("Adjustment", release)


@dataclass(frozen=True, kw_only=True, eq=False)
class AdjustProcedure(Procedure):
    """Find the closest table; repair is an option of its search, and it explains its own failures."""

    method: ClassVar[Method] = METHOD

    norm: str = "l1"
    weights: str | ArrayLike = "inverse"
    senses: str | ArrayLike = "key"
    surplus: float = 1.0
    max_change: float | None = 0.5
    noise: float = 0.0
    omega: float = 0.99
    squares: str | ArrayLike | None = None
    square_weights: str | ArrayLike | None = None
    integer: bool | None = None
    keep: tuple[Keep, ...] = ()
    on_conflict: str | None = "senses"
    """The option `repair` of the verb."""
    key: Key = field(default_factory=Key.draw)
    """The secret of the draws; the same for all clusters of a publication."""
    solver: str = "interior"

    def solve(self, problem: Problem, limits: Limits) -> Candidate:
        """Return the closest table with given or chosen senses."""
        if self.on_conflict is not None:
            raise_if_unknown("repair", self.on_conflict, ("senses", "relations"), UnknownCodeError)
        METHOD.require_choices(UnknownCodeError, solver=self.solver)
        if self.solver == "simplex" and self.norm not in ("l1", "linf"):
            raise InputError(
                f"solver 'simplex': it is for l1 and linf, not {self.norm!r}.", hint="squares need 'interior'."
            )
        task = self._build_task(problem.table, limits)
        task.seconds["reduce"] = limits.spent_s
        if self.on_conflict != "relations" and (why := explain_unchanged_cells(task.table, limits.deadline.left)):
            return Candidate(release=build_empty_release(task, why), problem=problem)
        release = self._adjust(task)
        task.seconds["solve"] = limits.spent_s - task.seconds["reduce"]
        limits.tell(release.objective, release.bound)
        return Candidate(release=release, problem=problem)

    def _adjust(self, task: Task) -> Adjustment:
        if isinstance(self.senses, str) and self.senses == "optimal":
            return adjust_with_optimal_senses(task)
        if task.secret_senses and self.on_conflict == "senses":
            return adjust_with_key_senses(task, self.on_conflict)
        return adjust_with_given_senses(task, self.senses, self.on_conflict)

    def _build_task(self, table: Table, limits: Limits) -> Task:
        """Return the task, with the options as the release records them."""
        kept = find_kept_cells(table, self.keep)
        working = table.with_(fixed=table.fixed | kept) if kept.any() else table
        task = Task(
            original=working,  # the release states which cells are kept: the audit must know it
            table=working,
            distance=build_distance(table, self.norm, self.weights, self.omega, self.squares, self.square_weights),
            need=needs_of_adjustment(working),
            surplus=_adjust_share(self.surplus, "surplus"),
            max_change=None if self.max_change is None else _adjust_share(self.max_change, "max_change"),
            noise=_adjust_share(self.noise, "noise"),
            secret_senses=isinstance(self.senses, str) and self.senses == "key",
            unit=_choose_unit(table, self.integer),
            adjuster=Adjuster(working.relations, working.fixed),
            solver=self.solver,
            limits=limits,
            key=self.key,
        )
        task.options = {
            "norm": self.norm, "weights": _record_option(self.weights),
            "senses": _record_option(self.senses), "surplus": self.surplus,
            "max_change": self.max_change, "unit": task.unit,
            "repair": self.on_conflict, "seed": limits.seed, "time_limit_s": limits.time_limit_s, "gap": limits.gap,
        }  # fmt: skip
        if METHOD.is_randomised(vars(self)):
            task.options["key"] = self.key
        if self.solver != "interior":
            task.options["solver"] = self.solver
        if self.noise:
            task.options["noise"] = self.noise
        task.details = {"kept": int(kept.sum())} if kept.any() else {}
        task.details["norm"] = self.norm
        if self.norm == "l12":
            task.options |= {
                "omega": self.omega,
                "squares": _record_option(self.squares),
                "square_weights": _record_option(self.square_weights),
            }
        return task


def _record_option(option: Any) -> Any:
    """Return an option as a release records it: arrays decide the result but are confidential."""
    return option if option is None or isinstance(option, str) else "given"


def _choose_unit(table: Table, integer: bool | None) -> float:
    """Return the unit of which published values are multiples; 0 if they may be any numbers."""
    if integer is None and not table.integer:
        return find_decimal_unit(table.values, table.relations, table.rhs)
    if integer is not None and not integer:
        return 0.0
    broken = np.abs(table.values - np.rint(table.values)) > 1e-9 * np.maximum(1.0, np.abs(table.values))
    if broken.any():
        raise InputError(
            f"integer: {table.label(int(np.argmax(broken)))} has no whole value.",
            hint="whole numbers can only be kept where all values are whole.",
        )
    return 1.0


def _adjust_share(number: float, name: str) -> float:
    if not (math.isfinite(number) and number >= 0):
        raise InputError(f"{name} {number!r}: a finite number of at least 0 is needed.")
    return float(number)
