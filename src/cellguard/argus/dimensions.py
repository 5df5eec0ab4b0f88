"""Turn the tau-ARGUS metadata of a dimension into a hierarchy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cellguard._io.trees.outline import parse_hrc_outline
from cellguard.argus.formats.lists import Recoding, read_argus_cdl_file, read_grc
from cellguard.argus.formats.rda import Variable
from cellguard.exceptions import FormatError, InputError
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.trees import parse_outline, sort_codes

__all__ = ["Dimension", "build_dimension", "find_file_any_case", "recode_dimension"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """A dimension of a table. Codes are stored without the blanks that pad them in a file."""

    variable: Variable
    hierarchy: Hierarchy
    new_codes: Mapping[str, str] = field(default_factory=dict)
    """Recoding of the records' codes: old -> new, where they differ."""

    def format_code(self, code: str) -> str:
        """Return a code as tau-ARGUS writes it: padded with blanks to the width of its column."""
        return code if code == self.hierarchy.total else code.rjust(self.variable.width or 0)


def build_dimension(variable: Variable, codes: Iterable[str], folder: Path) -> Dimension:
    """Return the hierarchy of a variable; `codes` are those in the data.

    As in tau-ARGUS, codes for missing values are below the total, whether they occur or not.
    """
    total = variable.total_code.strip() or "Total"
    missing = [code.strip() for code in variable.missing]
    seen = sort_codes(code for code in dict.fromkeys(codes) if code not in (*missing, total))
    labels = _read_labels(variable, folder)
    if variable.hierarchical and variable.hierarchy:
        lines = parse_hrc_outline(folder / variable.hierarchy, variable.lead)
        pairs, _ = parse_outline([(depth, code.strip(), label) for depth, code, label in lines], total)
    elif variable.hierarchical and variable.levels:
        pairs = _list_code_pairs(Hierarchy.from_digits(seen, variable.levels, total=total))
    else:
        pairs = [(code, total) for code in _sort_codes(seen)]
    listed = {code for code, _ in pairs}
    pairs += [(code, total) for code in dict.fromkeys(missing) if code not in listed]
    if not pairs:
        raise InputError(f"variable {variable.name!r} has no codes.")
    frame = {"code": [code for code, _ in pairs], "parent": [parent for _, parent in pairs]}
    hierarchy = Hierarchy.from_frame(frame, total=total)
    return Dimension(
        variable=variable, hierarchy=hierarchy.with_labels({c: x for c, x in labels.items() if c in hierarchy.codes})
    )


def find_file_any_case(path: Path) -> Path:
    """Find a file, ignoring case: some file systems do not distinguish REGION.CDL from region.cdl."""
    if path.exists() or not path.parent.is_dir():
        return path
    return next((p for p in sorted(path.parent.iterdir()) if p.name.lower() == path.name.lower()), path)


def _read_labels(variable: Variable, folder: Path) -> dict[str, str]:
    if not variable.code_list:
        return {}
    return {
        code.strip(): label
        for code, label in read_argus_cdl_file(find_file_any_case(folder / variable.code_list)).items()
    }


def _list_code_pairs(hierarchy: Hierarchy) -> list[tuple[str, str]]:
    parents = hierarchy.parents[0]
    return [(code, hierarchy.codes[parents[i]]) for i, code in enumerate(hierarchy.codes) if parents[i] >= 0]


def _sort_codes(codes: Sequence[str]) -> list[str]:
    return sorted(codes, key=int) if all(c.isdecimal() and c.isascii() for c in codes) else sorted(codes)


def recode_dimension(
    dimension: Dimension, codes: Iterable[str], *, path: Path | None = None, level: int = 0
) -> Dimension:
    """Return the dimension with coarser codes: by a recoding file, or cut off below a level.

    Parameters
    ----------
    dimension
        The dimension in the metadata.
    codes
        Codes that occur in the records.
    path, level
        A ``.grc`` file, or else the deepest level to keep; level 1 is directly below the total.
    """
    fine = dimension.hierarchy
    recoding = Recoding() if path is None else read_grc(path)
    if path is not None and recoding.groups:
        return _group_codes(dimension, codes, recoding, path)
    unknown = [code for code in recoding.collapsed if code not in fine.codes]
    if unknown:
        raise FormatError.at(path, None, f"{dimension.variable.name!r} has no code {unknown[0]!r}.")
    if path is None and level < 1:
        raise InputError(f"level {level} of {dimension.variable.name!r}: at least 1 is needed.")
    coarse = fine.collapse(level) if path is None else fine.collapse(below=recoding.collapsed)
    known = [code for code in dict.fromkeys(codes) if code in fine.codes]
    pairs = zip(known, fine.recode(known, to=coarse), strict=True)
    return replace(dimension, hierarchy=coarse, new_codes={old: new for old, new in pairs if old != new})


def _group_codes(dimension: Dimension, codes: Iterable[str], recoding: Recoding, path: Path) -> Dimension:
    if dimension.variable.hierarchical:
        raise FormatError.at(
            path, None, f"{dimension.variable.name!r} is hierarchical.", hint="collapse its codes with <TREERECODE>."
        )
    missing = [code.strip() for code in dimension.variable.missing]
    new = {code: code if code in missing else recoding.get_new_code(code) for code in dict.fromkeys(codes)}
    kept = _sort_codes([code for code in dict.fromkeys(new.values()) if code not in missing])
    flat = Hierarchy.flat([*kept, *missing], total=dimension.hierarchy.total)
    return replace(dimension, hierarchy=flat, new_codes={old: code for old, code in new.items() if old != code})
