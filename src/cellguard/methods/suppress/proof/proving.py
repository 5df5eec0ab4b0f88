"""Better patterns and a proof share the time: a quick search, the bound at the root, more search, and a tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard.methods.suppress.proof.exact import Exact
from cellguard.methods.suppress.search.improve import Search
from cellguard.methods.suppress.search.neighbourhoods import LargeSearch

__all__ = ["Proving", "search_and_prove"]


@dataclass(frozen=True, kw_only=True)
class ProofPolicy:
    """When rounds of improvement alternate with nodes of the tree.

    Rounds are counted, not timed: what is solved to the end is the same on every machine. ``bench/bench_suppress.py``
    compares changes on the tables of CSPLIB. No measurement is recorded here for the single numbers.
    """

    small_gap: float = 0.02
    """Gap at the root that a small tree closes without a better pattern."""
    wide_gap: float = 0.1
    """Gap that no tree is likely to close: a better pattern is worth more than nodes."""
    few_rounds: int = 300
    """Rounds of improvement after the root."""
    some_rounds: int = 2000
    """Further rounds if the gap is still wide."""
    many_rounds: int = 5000
    """Rounds after the small tree."""
    long_rounds: int = 50_000
    """Last rounds if the gap is still wide."""
    quick_programs: int = 500
    """A root that needed at most this many programs is quick: nodes cost less than rounds."""
    quick_nodes: int = 20
    """Nodes to try first after a quick root."""
    small_cells: int = 2000
    """A table with at most this many free cells is small."""
    small_nodes: int = 200
    """Nodes to try before a long search if the table is small or the gap nearly closed."""


PROOF_POLICY = ProofPolicy()


@dataclass(frozen=True, kw_only=True)
class HeavyShares:
    """Shares of the time that is left, for the steps of a proof for a heavy table; not tuned by a benchmark."""

    root: float = 0.2
    """For the bound at the root."""
    programs: float = 0.05
    """For programs at the root, if one for each attack would not fit into the time."""
    follow: float = 0.8
    """For a pattern along the point where the root ended, which is then cleaned up."""
    check: float = 0.05
    """What checking one pattern may take if a tree is to be tried."""
    tree: float = 0.3
    """For a small tree."""


HEAVY_SHARES = HeavyShares()


def search_and_prove(search: Search | LargeSearch, method: str, rounds: int | None, deadline: Deadline) -> None:
    """Improve the best pattern, and prove what can be proven of it, as the method says."""
    if not isinstance(search, Search):
        search.improve(deadline, rounds)
        return
    if method == "heuristic":
        search.improve(deadline.take_share(0.85), rounds)
        if search.is_closed() or deadline.passed or rounds is not None:
            return  # a number of rounds requests the same work on every machine, not a bound
    if search.followed and search.heavy and rounds is None and method == "auto":
        search.improve(deadline)  # the bound of an earlier round holds, and its point has been followed
        return
    Proving(search=search, exact=Exact(search.space), deadline=deadline, rounds=rounds).run(method)


@dataclass(eq=False, kw_only=True)
class Proving:
    """A search over one space, and the program that proves bounds on it."""

    search: Search
    exact: Exact
    deadline: Deadline
    rounds: int | None

    def run(self, method: str) -> None:
        """Prove the bound at the root; unless only the heuristic is requested, close the gap that it leaves."""
        search, exact = self.search, self.exact
        exact.on_bound = lambda bound: search.prove(min(bound, search.cost))
        if method == "heuristic":
            self._prove_root(1.0)
        elif search.heavy and method == "auto":
            self._search_heavy()
        else:
            exact.solve_root(self.deadline.take_share(0.3), search.cost)
            self._close(method)
        search.cuts, search.nodes = exact.cuts, exact.nodes

    def _prove_root(self, share: float) -> None:
        """Prove the bound at the root; of a heavy table first by the rows that need no program for each attack."""
        search, exact = self.search, self.exact
        part = self.deadline.take_share(share)
        if search.heavy:
            exact.solve_root(part, search.cost, programs=False)
            if exact.estimate_check_s() > self.deadline.left:  # they are a gamble, and get little time
                part = self.deadline.take_share(HEAVY_SHARES.programs)
        if not self._is_done():
            exact.solve_root(part, search.cost)

    def _search_heavy(self) -> None:
        """Prove the bound of a heavy table and improve the pattern; try a tree only if the gap is small."""
        search, exact = self.search, self.exact
        if self.rounds is not None:  # no share of the time decides what counted rounds give, pattern or bound
            search.improve(self.deadline, self.rounds)
            exact.solve_root(self.deadline, search.cost, programs=False)
            return
        self._prove_root(HEAVY_SHARES.root)
        if not self._is_done() and exact.y is not None:
            search.follow(exact.y, self.deadline.take_share(HEAVY_SHARES.follow))
        near = (
            not self._is_gap_above(PROOF_POLICY.small_gap)
            and exact.estimate_check_s() <= HEAVY_SHARES.check * self.deadline.left
        )
        if near and not self._is_done():
            self._branch(self.deadline.take_share(HEAVY_SHARES.tree), PROOF_POLICY.small_nodes)
        if not self._is_done():
            search.improve(self.deadline)

    def _is_done(self) -> bool:
        return self.search.is_closed() or self.deadline.passed

    def _is_gap_above(self, share: float) -> bool:
        """Whether more than this share of the cost is not proven."""
        return self.search.missing > share * self.search.cost

    def _improve(self, share: float, rounds: int) -> None:
        self.search.improve(self.deadline.take_share(share), rounds if self.rounds is None else self.rounds)

    def _close(self, method: str) -> None:
        """Close the gap that the root has left: by better patterns, and by a tree."""
        by_time = self.rounds is None
        if not self._is_done() and self.exact.y is not None:
            self.search.follow(self.exact.y, self.deadline.take_share(0.1))
        rows = self.exact.inequalities
        quick = (
            rows.programs <= PROOF_POLICY.quick_programs
            and not rows.few_movements
            and not self._is_gap_above(2.0 * PROOF_POLICY.wide_gap)
        )
        if by_time and quick and not self._is_done():
            self._branch(self.deadline.take_share(0.1), PROOF_POLICY.quick_nodes)
        if not self._is_done() and self._is_gap_above(max(self.search.gap, PROOF_POLICY.small_gap)):
            self._improve(0.1, PROOF_POLICY.few_rounds)
            if by_time and self._is_gap_above(PROOF_POLICY.wide_gap):  # rounds cost less than nodes
                self._improve(0.1, PROOF_POLICY.some_rounds)
        if self._is_done():
            return
        if by_time and (
            len(self.search.space) <= PROOF_POLICY.small_cells or not self._is_gap_above(PROOF_POLICY.wide_gap)
        ):
            self._branch(self.deadline.take_share(0.3), PROOF_POLICY.small_nodes)
            if self._is_done():
                return
        if method == "auto":
            self._improve(0.2, PROOF_POLICY.many_rounds)
        if by_time and self._is_gap_above(PROOF_POLICY.wide_gap):
            self._branch(self.deadline.take_share(0.05))  # a small tree may still close it
            if not self._is_done():
                self._improve(0.25, PROOF_POLICY.long_rounds)
        if not self._is_done():
            self._branch(self.deadline)

    def _branch(self, deadline: Deadline, nodes: int = -1) -> None:
        """Branch and cut from the best pattern; take what is better."""
        search = self.search
        cells, row, _ = search.space.members
        incumbent = np.zeros(len(search.space), bool)
        incumbent[row[search.best[cells]]] = True  # type: ignore[index]
        found = self.exact.solve(incumbent, search, deadline, nodes)
        if found.y is not None:
            search.adopt(found.y > 0.5)
