"""The unit of the last decimal of a table's values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cellguard._types import FloatArray

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = ["find_unit_of_values", "get_unit"]


def get_unit(table: Table) -> float:
    """Return the unit of the last decimal of the table's values; 0 if they have none."""
    return 1.0 if table.integer else find_unit_of_values(table.values)


def find_unit_of_values(values: FloatArray) -> float:
    """Return the unit of the last decimal of some values; 0 if they have none."""
    from cellguard._engine.numbers.multiples import find_last_decimal_unit

    return find_last_decimal_unit(values)
