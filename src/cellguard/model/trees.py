"""Trees of codes: read (code, parent) pairs from any description of a classification, sort, check and draw them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._types import IntArray
from cellguard.exceptions import InputError, UnknownCodeError, suggest_names

if TYPE_CHECKING:
    from cellguard._io.trees.outline import Line

__all__ = [
    "ABSENT",
    "MAX_LEVELS",
    "add_root",
    "compute_depths",
    "draw_tree_lines",
    "find_parent_columns",
    "match_leading_zeros",
    "order_tree",
    "parse_digit_codes",
    "parse_mapping",
    "parse_outline",
    "refuse_repeated_codes",
    "sort_codes",
    "suggest_code",
]  # fmt: skip

Pairs = list[tuple[str, str]]
"""Codes with their parents."""

ABSENT = -2
"""Marks the parent of a code that a tree does not have."""
MAX_LEVELS = 100
"""Maximum depth. Classifications are shallower; leaf sums of a chain of thousands of codes would fill memory."""
_SHOWN = 24
"""Maximum number of lines of a hierarchy that `repr` shows."""
_CODE_LIST = {
    "code": ("code", "child", "id", "key"),
    "parent": ("parent", "parent_code", "parentcode", "parent_id", "parentid"),
    "label": ("label", "name", "text", "title", "description"),
}
"""Property of a code in a code list -> names of its column."""


def suggest_code(code: str, known: Sequence[str]) -> str | None:
    """Return a hint with the code that may be meant; codes with dropped leading zeros come first.

    >>> suggest_code("7", ["70", "07", "08"])
    "'7' may be '07': spreadsheet programs drop leading zeros."
    >>> suggest_code("Nord", ["North", "South"])
    "did you mean 'North'?"
    """
    if code.isascii() and code.isdecimal():
        for width in sorted({len(other) for other in known if len(other) > len(code)}):
            if code.zfill(width) in known:
                return f"{code!r} may be {code.zfill(width)!r}: spreadsheet programs drop leading zeros."
    return suggest_names(code, known)


def sort_codes(codes: Iterable[str]) -> list[str]:
    """Sort codes naturally: by their leading number if all have one (50-249 before 250+), otherwise as text.

    Codes found in data are always sorted: a file in the order of its values would reveal sizes.

    >>> sort_codes(["250+", "0-49", "50-249"]), sort_codes(["S", "N", "10"])
    (['0-49', '50-249', '250+'], ['10', 'N', 'S'])
    """
    listed = sorted(codes)
    first = {code: found[0] for code in listed if (found := re.match("[0-9]+", code))}
    return sorted(listed, key=lambda code: int(first[code])) if len(first) == len(listed) else listed


def find_parent_columns(columns: Iterable[str]) -> dict[str, str]:
    """Return the columns of a code list with parents, by property."""
    named = {name.strip().lower(): name for name in columns}
    found = {part: next((named[w] for w in words if w in named), None) for part, words in _CODE_LIST.items()}
    return {part: name for part, name in found.items() if name is not None}


def parse_mapping(tree: Mapping[str, Any] | Sequence[Any], total: str) -> Pairs:
    """Return the pairs of nested dicts and lists."""
    pairs: Pairs = []
    nodes: list[tuple[str, Any]] = [(total, tree)]
    for parent, children in nodes:  # the list grows during the loop
        for code, below in _list_children(children, parent):
            pairs.append((code, parent))
            if below:
                nodes.append((code, below))
    return pairs


def _list_children(node: Any, parent: str) -> list[tuple[str, Any]]:
    """Yield the (code, children) pairs of one node of nested dicts and lists."""
    if isinstance(node, Mapping):
        return [(str(code), below) for code, below in node.items()]
    if isinstance(node, (str, int)) or not isinstance(node, Iterable):
        raise InputError(
            f"below {parent!r}: a dict or a list of codes is needed, not {type(node).__name__}.",
            hint='write {"North": ["N1", "N2"]}.',
        )
    out: list[tuple[str, Any]] = []
    for item in node:
        out.extend(_list_children(item, parent) if isinstance(item, Mapping) else [(str(item), None)])
    return out


def parse_digit_codes(codes: Iterable[str], levels: Sequence[int], total: str) -> Pairs:
    """Return the pairs of codes whose first digits are their parents' codes; `levels` gives the digits per level."""
    widths = [int(w) for w in np.cumsum(np.asarray(levels, dtype=np.int64))]
    if not widths or min(levels) < 1:
        raise InputError("levels: at least one level, and at least one digit per level, are needed.")
    parent_of: dict[str, str] = {}
    for code in map(str, codes):
        if len(code) not in widths:
            raise InputError(
                f"code {code!r} has {len(code)} digits; levels {tuple(levels)} allow {widths}.",
                hint="give the digits of each level from left to right.",
            )
        above = total
        for width in widths[: widths.index(len(code)) + 1]:
            parent_of.setdefault(code[:width], above)
            above = code[:width]
    return list(parent_of.items())


def parse_outline(lines: Sequence[Line], total: str | None) -> tuple[Pairs, str]:
    """Return the pairs of an outline, and its total: the only code at the top, unless another is named."""
    tops = [code for depth, code, _ in lines if depth == 0]
    listed = total is None and len(tops) == 1 and len(lines) > 1
    total = tops[0] if listed else total or "Total"
    path: list[str] = []
    pairs = []
    for depth, code, _ in lines:
        del path[depth:]
        if depth or not listed:
            pairs.append((code, path[-1] if path else total))
        path.append(code)
    return pairs, total


def add_root(codes: Sequence[str], above: Sequence[str], total: str | None) -> tuple[Pairs, str]:
    """Return (code, parent) pairs below one total, and the total's code; a parent may be empty."""
    up = ["" if parent == code else parent for code, parent in zip(codes, above, strict=True)]
    tops = [code for code, parent in zip(codes, up, strict=True) if not parent]
    listed = set(codes)
    unlisted = sorted({p for p in up if p and p not in listed and p != total})
    if total is None and not unlisted and len(tops) == 1:
        total = tops[0]
    elif total is None and not tops and len(unlisted) == 1:
        total = unlisted.pop()
    elif unlisted:
        raise UnknownCodeError(f"parent {unlisted[0]!r} is not a code.", hint=suggest_names(unlisted[0], listed))
    total = total or "Total"
    return [(c, p or total) for c, p in zip(codes, up, strict=True) if c != total or p], total


def order_tree(pairs: Sequence[tuple[str, str]], total: str) -> tuple[tuple[str, ...], IntArray]:
    """Return the codes of one tree, each after its parent, and the index of each code's parent."""
    codes = [code for code, _ in pairs]
    if len(set(codes)) != len(codes):
        refuse_repeated_codes(codes, [parent for _, parent in pairs])
    if "" in codes or not total:
        raise InputError(
            "a code is empty.", hint="name every code; the total is called 'Total' unless you say otherwise."
        )
    if total in codes:
        raise InputError(
            f"the total {total!r} is listed below another code.", hint="give the total another name with total=."
        )
    below: dict[str, list[str]] = {}
    for code, parent in pairs:
        below.setdefault(parent, []).append(code)
    order: list[str] = []
    up: list[int] = []
    stack = [(total, -1)]
    while stack:  # preorder, so that `repr` shows the codes in their order
        code, parent_index = stack.pop()
        stack.extend((child, len(order)) for child in reversed(below.get(code, ())))
        order.append(code)
        up.append(parent_index)
    if len(order) != len(codes) + 1:
        unknown = sorted(set(below) - set(codes) - {total})
        if unknown:
            raise UnknownCodeError(f"parent {unknown[0]!r} is not a code.", hint=suggest_names(unknown[0], codes))
        lost = sorted(set(codes) - set(order))
        raise InputError(f"code {lost[0]!r} is part of (or below) a cycle.", hint="no code may be its own ancestor.")
    return tuple(order), np.array(up)


def refuse_repeated_codes(codes: Sequence[str], parents: Sequence[str] | None = None) -> None:
    """Raise an error for the first code that is listed twice, under one parent or two."""
    seen: dict[str, int] = {}
    for i, code in enumerate(codes):
        j = seen.setdefault(code, i)
        if j != i and parents is not None and parents[j] != parents[i]:
            raise InputError(
                f"code {code!r} stands under two parents, {parents[j]!r} and {parents[i]!r}.",
                hint="in one tree a code has one parent; join two trees with Hierarchy.join for a second grouping.",
            )
        if j != i:
            raise InputError(f"code {code!r} is listed twice.", hint="each code of a hierarchy is listed once.")


def match_leading_zeros(codes: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Return the codes that a spreadsheet has stripped of leading zeros, with the known code that each must be.

    Only numbers are matched, and only if exactly one known code fits.

    >>> match_leading_zeros(["7", "x", "5"], ["07", "05", "005", "0x"])
    {'7': '07'}
    """
    full: dict[str, set[str]] = {}
    for code in known:
        if code.isdecimal() and code.startswith("0"):
            full.setdefault(code.lstrip("0") or "0", set()).add(code)
    return {code: next(iter(fits)) for code in codes if len(fits := full.get(code, set())) == 1}


def compute_depths(parents: IntArray, codes: Sequence[str]) -> IntArray:
    """Return the depth of each code, -1 where the tree does not have it; raise an error for a cycle."""
    depth = np.where(parents == -1, 0, -1)
    if (depth == 0).sum() != 1:
        raise InputError("a tree needs exactly one root, the total.")
    if (parents[parents[parents >= 0]] == ABSENT).any():
        raise InputError("a parent does not belong to the tree of its child.")
    # every code jumps to its ancestor 1, 2, 4, ... steps up, until it reaches the root or turns out to be in a cycle
    jump = np.where(parents >= 0, parents, np.arange(len(parents)))
    steps = (parents >= 0).astype(np.int64)
    for _ in range(len(parents).bit_length()):
        steps += steps[jump]
        jump = jump[jump]
    lost = np.flatnonzero((parents >= 0) & (depth[jump] < 0))
    if len(lost):
        raise InputError(
            f"code {codes[lost[0]]!r} is part of (or below) a cycle.", hint="no code may be its own ancestor."
        )
    deepest = int(steps.max())
    if deepest > MAX_LEVELS:
        raise InputError(
            f"{deepest:,} levels lie below the total; at most {MAX_LEVELS} are possible.",
            hint="is each code's parent its group, and not the code before it?",
        )
    return np.where(parents >= 0, steps, depth)


def draw_tree_lines(codes: Sequence[str], labels: Sequence[str], parents: IntArray) -> list[str]:
    """Draw the first of some trees, level by level up to the maximum number of lines; shorten large families."""
    below: dict[int, list[int]] = {}
    for child, parent in enumerate(parents[0].tolist()):
        if parent >= 0:
            below.setdefault(parent, []).append(child)
    named = [c if label == c else f"{c}  {label}" for c, label in zip(codes, labels, strict=True)]
    lines = [named[0]]

    def draw(code: int, margin: str, max_lines: int) -> None:
        children = below.get(code, [])
        shown = children if len(children) <= max_lines else children[: max(max_lines - 1, 0)]
        spare = max_lines - len(children)
        for i, child in enumerate(shown):
            last = i == len(children) - 1
            lines.append(f"{margin}{'└── ' if last else '├── '}{named[child]}")
            nested = max(spare // len(shown), 1) if child in below else 0
            draw(child, margin + ("    " if last else "│   "), nested)
        if len(shown) < len(children):
            lines.append(f"{margin}└── ... {len(children) - len(shown)} more")

    draw(0, "", _SHOWN)
    if len(parents) > 1:
        others = np.flatnonzero(parents[0] == ABSENT)
        names = ", ".join(codes[i] for i in others[:8]) + (", ..." if len(others) > 8 else "")
        lines.append(f"and in other trees: {names}")
    return lines
