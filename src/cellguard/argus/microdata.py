"""Make the tables of a batch from microdata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._io.frames import encode_frame_column
from cellguard.argus.dimensions import Dimension, build_dimension, recode_dimension
from cellguard.argus.formats.arb import Recode, SpecifyTable
from cellguard.argus.formats.data import parse_numbers, read_argus_columns, strip_codes
from cellguard.argus.formats.rda import Metadata, Variable
from cellguard.argus.safety import Safety
from cellguard.exceptions import FormatError, InputError
from cellguard.model.table import Table
from cellguard.rules import Request

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Made", "Microdata", "clear_missing_codes", "set_costs"]

_FREQUENCY, _UNITY, _DISTANCE = "-1", "-2", "-3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A table specified by a batch, with rules applied."""

    table: Table
    dimensions: tuple[Dimension, ...]
    response: Variable | None
    """None for a table of frequencies."""
    notes: tuple[str, ...] = ()

    @property
    def decimals(self) -> int:
        """Decimals of the published numbers."""
        return self.response.decimals if self.response is not None else 0


@dataclass(slots=True)
class Microdata:
    """Records with their metadata. Each column is read once, when a table needs it."""

    path: Path
    metadata: Metadata
    _columns: dict[str, pa.Array] = field(default_factory=dict)

    def make(self, spec: SpecifyTable, safety: Safety, recodes: Sequence[Recode], folder: Path) -> Made:
        """Tabulate the records of a table and apply its rules."""
        from cellguard.tabulation import tabulate

        roles = self._find_roles(spec, safety)
        variables = [self.metadata[name] for name in spec.dimensions]
        wanted = [v.name for v in (*variables, *roles.values()) if v.name not in self._columns]
        if wanted:
            self._columns |= read_argus_columns(self.path, self.metadata, wanted)
        dimensions = [self._build_dimension(v, recodes, folder) for v in variables]
        frame: dict[str, Any] = {
            d.variable.name: _recode_column(strip_codes(self._columns[d.variable.name]), d) for d in dimensions
        }
        names: dict[str, str] = {}
        for part, variable in roles.items():
            names[part] = variable.name if variable.name not in spec.dimensions else f"{part} {variable.name}"
            column = self._columns[variable.name]
            is_code = part in ("holding", "request")
            frame[names[part]] = strip_codes(column) if is_code else parse_numbers(column, self.path, variable)
        gaps = int(np.isnan(frame[names["value"]]).sum()) if "value" in names else 0
        notes = [f"{gaps} records have no value of {roles['value'].name!r}: they are left out."] if gaps else []
        holding = names.pop("holding", None)
        request = roles.get("request")
        options: dict[str, Any] = {**names, "top": max(safety.top, 2), "skip_missing": "value" in names}
        if request is not None:
            options["request_codes"] = request.request_codes or ("1", "2")
        by = {d.variable.name: d.hierarchy for d in dimensions}
        name = self.path.name.partition(".")[0]
        table = tabulate(frame, by, name=name, **options)
        table = table.apply(*safety.records) if safety.records else table
        if safety.holdings:  # rules about holdings apply to the same cells
            judged = tabulate(frame, by, holding=holding, **options)
            flagged = table.with_(statistics=judged.statistics).apply(*safety.holdings)
            table = flagged.with_(statistics=table.statistics)
        table = clear_missing_codes(table, variables) if safety.missing_is_safe else table
        table, cost_notes = set_costs(table, spec)
        return Made(table=table, dimensions=tuple(dimensions), response=roles.get("value"), notes=(*notes, *cost_notes))

    def _find_roles(self, spec: SpecifyTable, safety: Safety) -> dict[str, Variable]:
        """Return the variables of a table that are not dimensions, by their role."""
        roles: dict[str, Variable] = {}
        if spec.response:
            roles["value"] = self.metadata[spec.response]
        if spec.shadow and spec.shadow != spec.response:
            roles["shadow"] = self.metadata[spec.shadow]
        if spec.cost not in ("", _FREQUENCY, _UNITY, _DISTANCE) and spec.cost != spec.response:
            roles["cost"] = self.metadata[spec.cost]
        requests = any(isinstance(rule, Request) for rule in (*safety.records, *safety.holdings))
        wanted = {"weight": safety.weighted, "holding": bool(safety.holdings), "request": requests}
        for role in (role for role, needed in wanted.items() if needed):
            found = self.metadata.select_role(role)
            if len(found) > 1:
                raise FormatError.at(self.metadata.source, None, f"two variables are the {role}.")
            if not found:
                raise InputError(
                    f"the rules of a table need a {role}, and {self.metadata.source} has none.",
                    hint=f"mark the variable with <{role.upper()}>.",
                )
            roles[role] = found[0]
        return roles

    def _build_dimension(self, variable: Variable, recodes: Sequence[Recode], folder: Path) -> Dimension:
        seen = encode_frame_column(strip_codes(self._columns[variable.name]))[0]
        dimension = build_dimension(variable, seen, Path(self.metadata.source).parent)
        for recode in recodes:
            if recode.variable.lower() == variable.name.lower():
                path = folder / recode.path if recode.path else None
                dimension = recode_dimension(dimension, seen, path=path, level=recode.level or 0)
        return dimension


def _recode_column(column: pa.Array, dimension: Dimension) -> pa.Array:
    if not dimension.new_codes:
        return column
    import pyarrow as pa

    codes, index = encode_frame_column(column)
    new = np.array([dimension.new_codes.get(code, code) for code in codes], dtype=object)
    return pa.array(new[index])


def clear_missing_codes(table: Table, variables: Sequence[Variable]) -> Table:
    """Clear the cells that belong to a missing code."""
    missing = np.zeros(table.n_cells, dtype=bool)
    for d, variable in enumerate(variables):
        absent = [code.strip() for code in variable.missing]
        listed = np.array([code in absent for code in table.codes[d]])
        missing |= listed[table.coordinates[:, d]]
    clear = {name: np.where(missing, 0.0, getattr(table, name)) for name in ("lower", "upper", "sliding")}
    return table.with_(sensitive=table.sensitive & ~missing, **clear)


def set_costs(table: Table, spec: SpecifyTable) -> tuple[Table, tuple[str, ...]]:
    """Set the information loss given by the batch: the response, a variable, frequency or unity, to a power."""
    weights = table.weights
    notes: tuple[str, ...] = ()
    if spec.cost == _FREQUENCY and table.counts is not None:
        weights = table.counts
    elif spec.cost in (_UNITY, _DISTANCE):
        weights = np.ones(table.n_cells)
        if spec.cost == _DISTANCE:
            notes = (f"line {spec.line}: costs by distance are taken as equal costs.",)
    if spec.power != 1.0:
        weights = np.where(weights > 0, weights, 0.0) ** spec.power
    return table.with_(weights=weights), notes
