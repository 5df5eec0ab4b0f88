"""Better patterns and a proof share the time: a quick search, the bound at the root, more search, and a tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cellguard._engine.clock import Deadline
from cellguard.methods.suppress.exact import Exact
from cellguard.methods.suppress.improve import Search
from cellguard.methods.suppress.neighbourhoods import LargeSearch

__all__ = ["Proving", "search_and_prove"]

_SMALL_GAP = 0.02
"""Gap at the root that a small tree closes without a better pattern."""
_WIDE = 0.1
"""Gap that no tree is likely to close: a better pattern is worth more than nodes."""
_FEW, _MANY, _LONG = 300, 5000, 50_000
"""Rounds of improvement before the tree: counted, so that what is solved to the end is the same on every machine."""
_QUICK, _QUICK_TREE = 500, 20
"""Where the root took so few programs and nothing else, so many nodes are tried first: they cost less than rounds."""
_SMALL, _SMALL_TREE = 2000, 200
"""Of tables with so many free cells, or nearly closed, so many nodes are tried before a long search."""


def search_and_prove(search: Search | LargeSearch, method: str, rounds: int | None, deadline: Deadline) -> None:
    """Improve the best pattern, and prove what can be proven of it, as the method says."""
    if not isinstance(search, Search) or (search.heavy and method != "exact"):
        search.improve(deadline, rounds)
        return
    if method == "heuristic":
        search.improve(deadline.part(0.85), rounds)
        if search.closed() or deadline.passed or rounds is not None:
            return  # whoever counts rounds asks for the same work on every machine, not for a bound
    Proving(search=search, exact=Exact(search.space), deadline=deadline, rounds=rounds).run(method)


@dataclass(eq=False, kw_only=True)
class Proving:
    """A search over one space, and the program that proves bounds on it."""

    search: Search
    exact: Exact
    deadline: Deadline
    rounds: int | None

    def run(self, method: str) -> None:
        """Prove the bound at the root; unless the heuristic alone is asked for, close the gap that it leaves."""
        search, exact = self.search, self.exact
        exact.on_bound = lambda bound: search.prove(min(bound, search.cost))
        if method == "heuristic":
            exact.root(self.deadline, search.cost)
        else:
            exact.root(self.deadline.part(0.3), search.cost)
            self._close(method)
        search.cuts, search.nodes = exact.cuts, exact.nodes

    def _done(self) -> bool:
        return self.search.closed() or self.deadline.passed

    def _beyond(self, share: float) -> bool:
        """Whether more than this share of the cost is not proven."""
        return self.search.missing > share * self.search.cost

    def _improve(self, share: float, rounds: int) -> None:
        self.search.improve(self.deadline.part(share), rounds if self.rounds is None else self.rounds)

    def _close(self, method: str) -> None:
        """Close the gap that the root has left: by better patterns, and by a tree."""
        by_time = self.rounds is None
        if not self._done() and self.exact.y is not None:
            self.search.follow(self.exact.y, self.deadline.part(0.1))
        rows = self.exact.inequalities
        quick = rows.programs <= _QUICK and not rows.few_movements and not self._beyond(2.0 * _WIDE)
        if by_time and quick and not self._done():
            self._branch(self.deadline.part(0.1), _QUICK_TREE)
        if not self._done() and self._beyond(max(self.search.gap, _SMALL_GAP)):
            self._improve(0.1, _FEW)
        if self._done():
            return
        if by_time and (len(self.search.space) <= _SMALL or not self._beyond(_WIDE)):
            self._branch(self.deadline.part(0.3), _SMALL_TREE)
            if self._done():
                return
        if method == "auto":
            self._improve(0.2, _MANY)
        if by_time and self._beyond(_WIDE):
            self._branch(self.deadline.part(0.05))  # a small tree may still close it
            if not self._done():
                self._improve(0.25, _LONG)
        if not self._done():
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
