"""Ready tables of a batch: cells with values, and optional statuses, levels and contributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._io.frames import encode_frame_column
from cellguard.argus.dimensions import Dimension, build_dimension
from cellguard.argus.formats.arb import Recode, SpecifyTable
from cellguard.argus.formats.data import parse_numbers, read_argus_columns, strip_codes
from cellguard.argus.formats.rda import Metadata, Variable
from cellguard.argus.microdata import Made, clear_missing_codes, set_costs
from cellguard.argus.safety import Safety
from cellguard.exceptions import FormatError, InputError
from cellguard.model.table import Table
from cellguard.rules import Flags, add_contributions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ReadyTable"]


@dataclass(slots=True)
class ReadyTable:
    """Cells with their metadata."""

    path: Path
    metadata: Metadata
    totals: int = 0
    """2: totals are computed again, regardless of the totals in the file."""

    def make(self, spec: SpecifyTable, safety: Safety, recodes: Sequence[Recode], folder: Path) -> Made:
        """Read the cells of a table and apply its rules."""
        if recodes:
            raise FormatError.at(folder, recodes[0].line, "a table that is ready cannot be recoded.")
        if safety.holdings:
            raise FormatError.at(self.path, None, "a table that is ready has no holdings to look at.")
        columns = read_argus_columns(self.path, self.metadata)
        dimensions, frame = self._read_codes(spec, columns)
        response = self._get_response(spec)
        numbers = self._list_number_columns(spec, response, columns)
        frame |= numbers | {":status": self._read_status(columns)}
        frame |= self._read_levels(frame, safety)
        table = Table.from_frame(
            frame,
            {d.variable.name: d.hierarchy for d in dimensions},
            value=":value",
            status=":status",
            lower=":lower",
            upper=":upper",
            counts=":count" if ":count" in frame else None,
            weights=":cost" if ":cost" in frame else None,
            repair="leaves" if self.totals == 2 else None,
            integer=response.role == "frequency",
            name=self.path.name.partition(".")[0],
        )
        table = self._apply_rules(table, frame, safety)
        if safety.missing_is_safe:
            table = clear_missing_codes(table, [d.variable for d in dimensions])
        table, notes = set_costs(table, spec)
        return Made(
            table=table,
            dimensions=tuple(dimensions),
            response=None if response.role == "frequency" else response,
            notes=notes,
        )

    def _read_codes(
        self, spec: SpecifyTable, columns: Mapping[str, pa.Array]
    ) -> tuple[list[Dimension], dict[str, Any]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        frame: dict[str, Any] = {}
        dimensions = []
        for variable in (self.metadata[name] for name in spec.dimensions):
            codes = strip_codes(columns[variable.name])
            total = variable.total_code.strip() or "Total"
            codes = pc.if_else(pc.equal(codes, ""), pa.scalar(total), codes)  # an empty code is the total
            frame[variable.name] = codes
            dimensions.append(
                build_dimension(variable, encode_frame_column(codes)[0], Path(self.metadata.source).parent)
            )
        return dimensions, frame

    def _get_response(self, spec: SpecifyTable) -> Variable:
        if spec.response:
            return self.metadata[spec.response]
        found = self.metadata.select_role("frequency")
        if not found:
            raise InputError(f"{self.metadata.source}: no variable is the frequency.", hint="mark it with <FREQUENCY>.")
        return found[0]

    def _list_number_columns(
        self, spec: SpecifyTable, response: Variable, columns: Mapping[str, pa.Array]
    ) -> dict[str, Any]:
        """Return the numeric columns that the table needs, by their role."""
        wanted = {":value": response}
        for part, role in ((":count", "frequency"), (":lower", "lower"), (":upper", "upper"), (":shadow", "shadow")):
            for variable in self.metadata.select_role(role)[:1]:
                wanted[part] = variable
        if spec.shadow:
            wanted[":shadow"] = self.metadata[spec.shadow]
        if spec.cost and not spec.cost.startswith("-"):
            wanted[":cost"] = self.metadata[spec.cost]
        for i, variable in enumerate(self.metadata.select_role("top")):
            wanted[f":top{i}"] = variable
        out = {part: parse_numbers(columns[variable.name], self.path, variable) for part, variable in wanted.items()}
        out[":value"] = np.nan_to_num(out[":value"])  # a cell without a number is empty
        return out

    def _read_status(self, columns: Mapping[str, pa.Array]) -> list[str]:
        found = self.metadata.select_role("status")
        if not found:
            return [""] * len(next(iter(columns.values())))
        words = {self.metadata.safe: "s", self.metadata.unsafe: "u", self.metadata.protect: "z", "": "s"}
        words |= {"E": "z", "M": "s"}  # empty; an earlier secondary suppression
        for letter, mark in {"A": "u", "B": "u", "C": "u", "D": "s", "V": "s"}.items():  # of business statistics
            words.setdefault(letter, mark)
        texts = strip_codes(columns[found[0].name]).to_pylist()
        for line, text in enumerate(texts, 1):
            if text not in words:
                raise FormatError.at(
                    self.path,
                    line,
                    f"unknown status {text[:8]!r}.",
                    hint=f"known are {', '.join(filter(None, words))}.",
                )
        return [words[text] for text in texts]

    def _read_levels(self, frame: Mapping[str, Any], safety: Safety) -> dict[str, Any]:
        """Return the levels of the cells marked unsafe in the file: given, or the manual percentage of the value."""
        unsafe = np.array([mark == "u" for mark in frame[":status"]])
        usual = safety.manual_percent / 100.0 * np.abs(frame[":value"])
        out = {}
        for part, slack in ((":lower", np.maximum(frame[":value"], 0.0)), (":upper", np.inf)):
            given = frame.get(part, np.full(len(unsafe), np.nan))
            out[part] = np.where(unsafe, np.minimum(np.where(np.isnan(given), usual, given), slack), 0.0)
        return out

    def _apply_rules(self, table: Table, frame: Mapping[str, Any], safety: Safety) -> Table:
        """Apply the rules with the contributions in the file; cells without a row are empty."""
        given = Flags(names=("status",), reasons=("unsafe in the file",), flagged=(table.sensitive_cells,))
        table = table.with_(flags=given if table.sensitive.any() else None)
        tops = [name for name in frame if name.startswith(":top")]
        if tops or safety.records:  # without rules, too: the file for Eurostat shows the largest contributor's share
            table = add_contributions(table, frame, top=tops, shadow=":shadow" if ":shadow" in frame else None)
        return table.apply(*safety.records) if safety.records else table
