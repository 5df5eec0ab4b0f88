"""Assertions for the tests of packages that build on cellguard. They name cells, never their values.

>>> import cellguard as cg
>>> table = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]])
>>> assert_additive(table)
>>> assert_tables_equal(table, table.with_(name="another"))
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from cellguard.model.checks import compute_residuals_and_noise
from cellguard.model.table import Table
from cellguard.release.release import Release

__all__ = ["assert_additive", "assert_releases_equal", "assert_safe", "assert_tables_equal"]


def assert_additive(what: Table | Release) -> None:
    """Assert that every relation holds, between the values of a table or the published values of a release.

    Relations of a release that contain a cell without a published value are left out.
    """
    table, values = (what, what.values) if isinstance(what, Table) else (what.table, what.get_point_values())
    T = table.relations
    residual, allowed = compute_residuals_and_noise(T, table.rhs, np.nan_to_num(values))
    complete = abs(T) @ np.isnan(values).astype(np.float64) == 0
    bad = complete & (np.abs(residual) > allowed)
    if bad.any():
        worst = int(np.argmax(np.where(bad, np.abs(residual) - allowed, -np.inf)))
        raise AssertionError(f"{int(bad.sum())} relations do not hold; the worst is {table.describe_relation(worst)}")


def assert_safe(release: Release) -> None:
    """Assert that there is a release, and that the independent audit finds every sensitive cell protected."""
    if not release.published:
        raise AssertionError(f"there is no release: {release.status}. {release.explanation}".strip())
    audit = release.audit()
    if not audit.safe:
        raise AssertionError(f"the audit refuses the release: {audit.summary()}")


def assert_tables_equal(left: Table, right: Table) -> None:
    """Assert that two tables have the same cells, relations, bounds, weights and levels; names may differ."""
    if left.relations.shape != right.relations.shape:
        raise AssertionError(f"relations and cells differ: {left.relations.shape} and {right.relations.shape}")
    if (left.relations != right.relations).nnz:
        raise AssertionError("relations differ")
    if (left.dimensions, left.codes) != (right.dimensions, right.codes):
        raise AssertionError("dimensions or their codes differ")
    for field in fields(Table):
        a, b = getattr(left, field.name), getattr(right, field.name)
        if (isinstance(a, np.ndarray) or isinstance(b, np.ndarray)) and not np.array_equal(a, b):
            raise AssertionError(f"{field.name} differs{_describe_difference(left, a, b)}")


def assert_releases_equal(left: Release, right: Release) -> None:
    """Assert that two releases publish the same, cell by cell."""
    if type(left) is not type(right):
        raise AssertionError(f"kinds differ: {left.method} and {right.method}")
    mine, other = left.columns(), right.columns()
    for name in mine:
        if not np.array_equal(mine[name], other[name], equal_nan=mine[name].dtype.kind == "f"):
            raise AssertionError(f"{name} differs{_describe_difference(left.table, mine[name], other[name])}")


def _describe_difference(table: Table, a: object, b: object) -> str:
    left, right = np.asarray(a), np.asarray(b)
    if left.shape != right.shape or left.shape != (table.n_cells,):
        return ""
    return f"; first in {table.label(int(np.argmax(left != right)))}"
