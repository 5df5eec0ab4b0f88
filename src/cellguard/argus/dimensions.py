"""What the metadata of tau-ARGUS says about a dimension, as a hierarchy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cellguard._io.argus.lists import Recoding, read_argus_cdl_file, read_grc
from cellguard._io.argus.rda import Variable
from cellguard._io.outline import parse_hrc_outline
from cellguard.exceptions import FormatError, InputError
from cellguard.nouns.hierarchy import Hierarchy
from cellguard.nouns.trees import code_tree_of_lines

__all__ = ["Dimension", "batch_file_in_any_case", "dimension_of_batch_variable", "recoded_dimension"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """A dimension of a table. Codes are kept without the blanks that fill their column in a file."""

    variable: Variable
    hierarchy: Hierarchy
    new_codes: Mapping[str, str] = field(default_factory=dict)
    """Recoding of the records' codes: old -> new, where they differ."""

    def written(self, code: str) -> str:
        """Return a code as tau-ARGUS writes it: filled with blanks to the width of its column."""
        return code if code == self.hierarchy.total else code.rjust(self.variable.width or 0)


def dimension_of_batch_variable(variable: Variable, codes: Iterable[str], folder: Path) -> Dimension:
    """Make the hierarchy of a variable; `codes` are those that occur in the data.

    The missing codes lie below the total, whether they occur or not, as tau-ARGUS has them.
    """
    total = variable.total_code.strip() or "Total"
    missing = [code.strip() for code in variable.missing]
    seen = [code for code in dict.fromkeys(codes) if code not in (*missing, total)]
    labels = _labels_of_batch_codes(variable, folder)
    if variable.hierarchical and variable.hierarchy:
        lines = parse_hrc_outline(folder / variable.hierarchy, variable.lead)
        pairs, _ = code_tree_of_lines([(depth, code.strip(), label) for depth, code, label in lines], total)
    elif variable.hierarchical and variable.levels:
        pairs = _pairs_of_batch_codes(Hierarchy.from_digits(seen, variable.levels, total=total))
    else:
        pairs = [(code, total) for code in _batch_codes_in_order(seen)]
    listed = {code for code, _ in pairs}
    pairs += [(code, total) for code in dict.fromkeys(missing) if code not in listed]
    if not pairs:
        raise InputError(f"variable {variable.name!r} has no codes.")
    frame = {"code": [code for code, _ in pairs], "parent": [parent for _, parent in pairs]}
    hierarchy = Hierarchy.from_frame(frame, total=total)
    return Dimension(
        variable=variable, hierarchy=hierarchy.with_labels({c: x for c, x in labels.items() if c in hierarchy.codes})
    )


def batch_file_in_any_case(path: Path) -> Path:
    """Return a file; file systems of other machines do not tell REGION.CDL from region.cdl."""
    if path.exists() or not path.parent.is_dir():
        return path
    return next((p for p in sorted(path.parent.iterdir()) if p.name.lower() == path.name.lower()), path)


def _labels_of_batch_codes(variable: Variable, folder: Path) -> dict[str, str]:
    if not variable.code_list:
        return {}
    return {
        code.strip(): label
        for code, label in read_argus_cdl_file(batch_file_in_any_case(folder / variable.code_list)).items()
    }


def _pairs_of_batch_codes(hierarchy: Hierarchy) -> list[tuple[str, str]]:
    parents = hierarchy.parents[0]
    return [(code, hierarchy.codes[parents[i]]) for i, code in enumerate(hierarchy.codes) if parents[i] >= 0]


def _batch_codes_in_order(codes: Sequence[str]) -> list[str]:
    return sorted(codes, key=int) if all(c.isdecimal() and c.isascii() for c in codes) else sorted(codes)


def recoded_dimension(
    dimension: Dimension, codes: Iterable[str], *, path: Path | None = None, level: int = 0
) -> Dimension:
    """Return the dimension with coarser codes: as a recoding file says, or without what is deeper than a level.

    Parameters
    ----------
    dimension
        As it is in the metadata.
    codes
        Codes that occur in the records.
    path, level
        A ``.grc`` file, or else the deepest level to keep; 1 lies right below the total.
    """
    fine = dimension.hierarchy
    recoding = Recoding() if path is None else read_grc(path)
    if path is not None and recoding.groups:
        return _dimension_with_recoded_groups(dimension, codes, recoding, path)
    unknown = [code for code in recoding.collapsed if code not in fine.codes]
    if unknown:
        raise FormatError.at(path, None, f"{dimension.variable.name!r} has no code {unknown[0]!r}.")
    if path is None and level < 1:
        raise InputError(f"level {level} of {dimension.variable.name!r}: at least 1 is needed.")
    coarse = fine.collapse(level) if path is None else fine.collapse(below=recoding.collapsed)
    known = [code for code in dict.fromkeys(codes) if code in fine.codes]
    pairs = zip(known, fine.recode(known, to=coarse), strict=True)
    return replace(dimension, hierarchy=coarse, new_codes={old: new for old, new in pairs if old != new})


def _dimension_with_recoded_groups(
    dimension: Dimension, codes: Iterable[str], recoding: Recoding, path: Path
) -> Dimension:
    if dimension.variable.hierarchical:
        raise FormatError.at(
            path, None, f"{dimension.variable.name!r} is hierarchical.", hint="collapse its codes with <TREERECODE>."
        )
    missing = [code.strip() for code in dimension.variable.missing]
    new = {code: code if code in missing else recoding.new_code(code) for code in dict.fromkeys(codes)}
    kept = _batch_codes_in_order([code for code in dict.fromkeys(new.values()) if code not in missing])
    flat = Hierarchy.flat([*kept, *missing], total=dimension.hierarchy.total)
    return replace(dimension, hierarchy=flat, new_codes={old: code for old, code in new.items() if old != code})
