"""Trees of codes: (code, parent) pairs from whatever describes a classification, put in order, checked and drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._types import IntArray
from cellguard.exceptions import InputError, UnknownCodeError, did_you_mean

if TYPE_CHECKING:
    from cellguard._io.outline import Line

__all__ = [
    "ABSENT", "MAX_LEVELS", "code_tree_of_lines", "code_tree_of_mapping", "depths_in_tree", "lines_of_code_tree",
    "nearest_codes_of_tree", "ordered_tree", "parent_columns_of_code_tree", "refuse_repeated_codes", "rooted_tree",
    "tree_of_digits",
]  # fmt: skip

Pairs = list[tuple[str, str]]
"""Codes with their parents."""

ABSENT = -2
"""Stands for the parent of a code that a tree does not have."""
MAX_LEVELS = 100
"""No classification is as deep; the sums of leaves of a chain of many thousand codes would fill the memory."""
_SHOWN = 24
"""Lines of a hierarchy that `repr` shows."""
_CODE_LIST = {
    "code": ("code", "child", "id", "key"),
    "parent": ("parent", "parent_code", "parentcode", "parent_id", "parentid"),
    "label": ("label", "name", "text", "title", "description"),
}
"""What a code list says of a code -> how its column is called."""


def nearest_codes_of_tree(code: str, known: Sequence[str]) -> str | None:
    """Return a hint with the code that may be meant: zeros that a spreadsheet dropped come first.

    >>> nearest_codes_of_tree("7", ["70", "07", "08"])
    "'7' may be '07': spreadsheet programs drop leading zeros."
    >>> nearest_codes_of_tree("Nord", ["North", "South"])
    "did you mean 'North'?"
    """
    if code.isascii() and code.isdecimal():
        for width in sorted({len(other) for other in known if len(other) > len(code)}):
            if code.zfill(width) in known:
                return f"{code!r} may be {code.zfill(width)!r}: spreadsheet programs drop leading zeros."
    return did_you_mean(code, known)


def parent_columns_of_code_tree(columns: Iterable[str]) -> dict[str, str]:
    """Return the columns of a code list with parents, by their part."""
    named = {name.strip().lower(): name for name in columns}
    found = {part: next((named[w] for w in words if w in named), None) for part, words in _CODE_LIST.items()}
    return {part: name for part, name in found.items() if name is not None}


def code_tree_of_mapping(tree: Mapping[str, Any] | Sequence[Any], total: str) -> Pairs:
    """Return the pairs of nested dicts and lists."""
    pairs: Pairs = []
    nodes: list[tuple[str, Any]] = [(total, tree)]
    for parent, children in nodes:  # grows while it is walked
        for code, below in _children_in_code_tree(children, parent):
            pairs.append((code, parent))
            if below:
                nodes.append((code, below))
    return pairs


def _children_in_code_tree(node: Any, parent: str) -> list[tuple[str, Any]]:
    """Return the (code, what is below) pairs of one node of nested dicts and lists."""
    if isinstance(node, Mapping):
        return [(str(code), below) for code, below in node.items()]
    if isinstance(node, (str, int)) or not isinstance(node, Iterable):
        raise InputError(
            f"below {parent!r}: a dict or a list of codes is needed, not {type(node).__name__}.",
            hint='write {"North": ["N1", "N2"]}.',
        )
    out: list[tuple[str, Any]] = []
    for item in node:
        out.extend(_children_in_code_tree(item, parent) if isinstance(item, Mapping) else [(str(item), None)])
    return out


def tree_of_digits(codes: Iterable[str], levels: Sequence[int], total: str) -> Pairs:
    """Return the pairs of codes whose first digits are their parents' codes; so many digits a level."""
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


def code_tree_of_lines(lines: Sequence[Line], total: str | None) -> tuple[Pairs, str]:
    """Return the pairs of an outline, and its total: a single code at the top, unless another is named."""
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


def rooted_tree(codes: Sequence[str], above: Sequence[str], total: str | None) -> tuple[Pairs, str]:
    """Return (code, parent) pairs below one total, and its code, for codes whose parent may be empty."""
    up = ["" if parent == code else parent for code, parent in zip(codes, above, strict=True)]
    tops = [code for code, parent in zip(codes, up, strict=True) if not parent]
    listed = set(codes)
    unlisted = sorted({p for p in up if p and p not in listed and p != total})
    if total is None and not unlisted and len(tops) == 1:
        total = tops[0]
    elif total is None and not tops and len(unlisted) == 1:
        total = unlisted.pop()
    elif unlisted:
        raise UnknownCodeError(f"parent {unlisted[0]!r} is not a code.", hint=did_you_mean(unlisted[0], listed))
    total = total or "Total"
    return [(c, p or total) for c, p in zip(codes, up, strict=True) if c != total or p], total


def ordered_tree(pairs: Sequence[tuple[str, str]], total: str) -> tuple[tuple[str, ...], IntArray]:
    """Return the codes of one tree, each behind its parent, and the place of each code's parent."""
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
    while stack:  # preorder: what repr shows is the order of the codes
        code, parent_index = stack.pop()
        stack.extend((child, len(order)) for child in reversed(below.get(code, ())))
        order.append(code)
        up.append(parent_index)
    if len(order) != len(codes) + 1:
        unknown = sorted(set(below) - set(codes) - {total})
        if unknown:
            raise UnknownCodeError(f"parent {unknown[0]!r} is not a code.", hint=did_you_mean(unknown[0], codes))
        lost = sorted(set(codes) - set(order))
        raise InputError(f"code {lost[0]!r} is part of (or below) a cycle.", hint="no code may be its own ancestor.")
    return tuple(order), np.array(up)


def refuse_repeated_codes(codes: Sequence[str], parents: Sequence[str] | None = None) -> None:
    """Raise the error for the first code that is listed twice, under two parents or under one."""
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


def depths_in_tree(parents: IntArray, codes: Sequence[str]) -> IntArray:
    """Return the depth of each code, -1 where the tree does not have it; a cycle is an error."""
    depth = np.where(parents == -1, 0, -1)
    if (depth == 0).sum() != 1:
        raise InputError("a tree needs exactly one root, the total.")
    if (parents[parents[parents >= 0]] == ABSENT).any():
        raise InputError("a parent does not belong to the tree of its child.")
    # every code jumps to its ancestor 1, 2, 4, ... steps up, until all are at the root or will never be there
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


def lines_of_code_tree(codes: Sequence[str], labels: Sequence[str], parents: IntArray) -> list[str]:
    """Draw the first of some trees, level by level as far as lines allow; long families are cut."""
    below: dict[int, list[int]] = {}
    for child, parent in enumerate(parents[0].tolist()):
        if parent >= 0:
            below.setdefault(parent, []).append(child)
    named = [c if label == c else f"{c}  {label}" for c, label in zip(codes, labels, strict=True)]
    lines = [named[0]]

    def draw(code: int, margin: str, room: int) -> None:
        children = below.get(code, [])
        shown = children if len(children) <= room else children[: max(room - 1, 0)]
        spare = room - len(children)
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
