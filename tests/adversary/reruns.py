"""The attacker who runs the program with the secret that everybody has: the default one.

A method that protects by chance must draw its secret. If it has a default instead, an attacker runs the program over all
tables that the release leaves possible, with that default, and keeps those that give the same release: the truth alone.
Two things give a default away: the default seeds of old releases (0 and 1) or an empty key make the same release again,
and two runs without a key make the same release. Either may happen by chance where few outcomes exist, so both are
counted beside runs with fresh keys, and judged at the end of a campaign.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from math import sqrt
from typing import Any

import cellguard as cg
from adversary.cases import Case
from adversary.options import VERBS, is_randomised

RANDOMISED = ("intervals", "round", "perturb", "adjust")
OLD_DEFAULTS: tuple[dict[str, Any], ...] = (
    {"seed": 0}, {"seed": 1}, {"key": bytes(32)}, *({"key": cg.Key.from_public_number(k)} for k in (0, 1)),
)  # fmt: skip
FRESH = tuple({"key": sha256(f"fresh {k}".encode()).digest()} for k in (7, 8))
"""Secrets that nobody has: how often chance alone makes the same release."""


def rerun_defaults(made: Case, method: str, options: Mapping[str, Any], figures: Counter[str]) -> None:
    """Protect a table without giving a secret; count how often old defaults, or fresh secrets, do the same."""
    if not is_randomised(method, options):
        return
    plain = {name: value for name, value in options.items() if name not in ("seed", "key")}
    mine = _publish(made.table, method, plain)
    if mine is None:
        return
    figures[f"rerun {method}: tables"] += 1
    for kind, secrets in (("old defaults", OLD_DEFAULTS), ("fresh secrets", FRESH), ("again", ({},))):
        same = [found == mine for s in secrets for found in _list_published(made.table, method, plain, s)]
        figures[f"rerun {method}: {kind}"] += any(same)


def _list_published(table: cg.Table, method: str, options: dict[str, Any], secret: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what the method publishes with a secret: once for each way of giving it that the method has."""
    known = inspect.signature(VERBS[method]).parameters
    if not secret:
        yield _publish(table, method, options)
    for name, value in secret.items():
        if name in known:
            yield _publish(table, method, {**options, name: value})


def _publish(table: cg.Table, method: str, options: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the columns of a release; None if nothing is published, or the secret is refused."""
    try:
        release = VERBS[method](table, **options)
    except cg.CellguardError:
        return None
    if not release.published:
        return None
    return tuple(tuple(map(str, column.tolist())) for column in release.columns().values())


def list_defaults(figures: Mapping[str, float]) -> list[str]:
    """Say of which methods the default secret is known: more of their releases are made again than by chance."""
    out = []
    for method in ("suppress", *RANDOMISED):
        tables, chance = (figures.get(f"rerun {method}: {kind}", 0) for kind in ("tables", "fresh secrets"))
        for kind in ("old defaults", "again"):
            hits = figures.get(f"rerun {method}: {kind}", 0)
            # old defaults are five guesses where fresh secrets are two
            if hits > 2 * chance + 4 * sqrt(chance + 1) + 0.05 * tables:
                out.append(f"{kind} make {hits} of {tables} releases by {method} again; fresh secrets {chance}")
    return out
