"""A job for somebody's own data: look at the columns, guess their parts, write a file full of explanations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cellguard.exceptions import InputError

__all__ = ["Column", "draft", "look"]

_VALUES = (
    *("turnover", "value", "amount", "sales", "revenue", "income", "investment", "output", "wage", "cost", "price"),
    *("umsatz", "wert", "chiffre", "montant", "valor", "omzet", "fatturato"),
)
_HOLDINGS = ("holding", "group", "parent", "concern", "konzern", "gruppe", "grupo", "gruppo")
_WEIGHTS = ("weight", "wgt", "grossing", "gewicht", "poids", "peso")
_MAX_CODES = 300
_MAX_CELLS = 5000
_SAMPLE = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What can be said of a column from a first look."""

    name: str
    numeric: bool
    whole: bool
    """Whole numbers only."""
    comma: bool
    """Numbers with a decimal comma."""
    digits: bool
    """Whole numbers of at least two digits: their first digits may be codes of a higher level."""
    distinct: int
    filled: int
    """Records that have an entry."""
    gaps: int
    """Records that have none."""


def look(path: Path) -> tuple[list[Column], int]:
    """Look at the first records of a data file: its columns, and how many records were looked at."""
    import pyarrow.compute as pc

    from cellguard._io.frames import read_frame

    columns = []
    rows = 0
    for name, whole_column in read_frame(path).items():
        column = _without_blanks(whole_column.slice(0, _SAMPLE))
        rows = len(column)
        number, comma = _numbers(column)
        columns.append(
            Column(
                name=name,
                numeric=number is not None and rows > column.null_count,
                whole=number is not None and bool(pc.all(pc.equal(number, pc.round(number))).as_py()),
                comma=comma,
                digits=_long_codes(column),
                distinct=int(pc.count_distinct(column).as_py()),
                filled=rows - column.null_count,
                gaps=column.null_count,
            )
        )
    if not columns or not rows:
        raise InputError(
            f"{path}: there are no records.", hint="the first line names the columns, the others hold the records."
        )
    return columns, rows


def _is_text(column: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _without_blanks(column: Any) -> Any:
    """Return the column with nothing where a text is empty or blank."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _is_text(column):
        return column
    return pc.if_else(pc.equal(pc.utf8_trim_whitespace(column), ""), pa.scalar(None, column.type), column)


def _long_codes(column: Any) -> bool:
    """Whether all entries are digits, and as many of them, two or more."""
    import pyarrow.compute as pc

    text = column.cast("string").drop_null()
    if not len(text) or not pc.all(pc.match_substring_regex(text, "^[0-9]{2,}$")).as_py():
        return False
    return bool(pc.count_distinct(pc.utf8_length(text)).as_py() == 1)


def _numbers(column: Any) -> tuple[Any, bool]:
    """Return the column as numbers, or None, and whether their decimal sign is a comma."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = _is_text(column)
    trimmed = pc.utf8_trim_whitespace(column) if text else column
    for comma in (False, True) if text else (False,):
        try:
            return (pc.replace_substring(trimmed, ",", ".") if comma else trimmed).cast(pa.float64(), safe=False), comma
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            continue
    return None, False


def _guess(columns: list[Column], rows: int) -> dict[str, Any]:
    """Guess which column is the value, the holding and the weight, and which are dimensions."""

    def named(words: tuple[str, ...], *, numeric: bool | None = None) -> str | None:
        for word in words:
            for c in columns:
                if word in c.name.lower() and numeric in (None, c.numeric):
                    return c.name
        return None

    weight = named(_WEIGHTS, numeric=True)
    value = named(_VALUES, numeric=True)
    if value is None:  # the number with the most different entries, unless it numbers the records
        amounts = [c for c in columns if c.numeric and c.distinct > 20 and not (c.whole and c.distinct == rows)]
        amounts = [c for c in amounts if c.name != weight]
        value = max(amounts, key=lambda c: c.distinct).name if amounts else None
    holding = named(_HOLDINGS)
    taken = {value, weight, holding}
    few = min(_MAX_CODES, max(2, rows // 3))
    fits = [c for c in columns if c.name not in taken and 2 <= c.distinct <= min(few, c.filled - 1)]
    dims = sorted(fits, key=lambda c: c.numeric and c.distinct > 100)  # numbers that few records share are hardly codes
    comma = any(c.comma for c in columns if c.name in (value, weight))
    gaps = {c.name: c.gaps for c in columns}
    return {"value": value, "weight": weight, "holding": holding, "comma": comma, "dimensions": dims, "gaps": gaps}


def _active(dims: list[Column]) -> int:
    """Return how many dimensions a first table may have: three, and no more than some thousand cells."""
    cells, n = 1, 0
    for column in dims[:3]:
        cells *= column.distinct + 1
        if n and cells > _MAX_CELLS:
            break
        n += 1
    return n


def draft(path: Path, folder: Path) -> str:
    """Return a commented job for a data file, to be saved in a folder."""
    import os

    columns, rows = look(path)
    guess = _guess(columns, rows)
    dims = guess["dimensions"]
    if not dims:
        raise InputError(
            f"{path}: no column looks like a dimension (2 to {_MAX_CODES} different codes).",
            hint="a table needs at least one column of codes, such as region or activity.",
        )
    shown = os.path.relpath(path, folder)
    name = "".join(c if c.isalnum() or c in "._-" else "-" for c in path.stem).strip("-._") or "table"
    about = "\n".join(f"#   {c.name}: {_described(c)}" for c in columns)
    parts = [_HEAD.format(name=name, file=_text(shown), about=about), _data(guess)]
    active = _active(dims)
    parts += [_dimension(d, path.parent, folder, active=k < active) for k, d in enumerate(dims[:8])]
    parts.append(_REST.format(folder=_text(f"{name}-release"), rules=_RULES if guess["value"] else _COUNTS))
    return "\n".join(parts)


def _described(column: Column) -> str:
    kind = ("whole numbers" if column.whole else "numbers") if column.numeric else "codes or text"
    return f"{kind}, {column.distinct:,} different" + (f", {column.gaps:,} records without" if column.gaps else "")


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _key(name: str) -> str:
    plain = all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    return name if plain and name else _text(name)


def _data(guess: dict[str, Any]) -> str:
    lines = []
    texts = {
        "value": "column to add up; left out, records are counted",
        "holding": "records of one holding count as one contributor",
        "weight": "sampling weights",
    }
    for role, about in texts.items():
        column = guess[role]
        lines.append(f"{role} = {_text(column)}    # {about}" if column else f'# {role} = "..."    # {about}')
    lines.append(f'{"" if guess["comma"] else "# "}decimal = ","    # decimal sign of numbers in text files')
    lines.append(_gap(guess, "value", "skip_missing = true    # leave out records without a value"))
    lines.append(_gap(guess, "holding", "standalone = true    # records without a holding stand alone") + "\n")
    return "\n".join(lines)


def _gap(guess: dict[str, Any], role: str, line: str) -> str:
    """Return what to do with records that lack an entry; switched on where there are some, which is said."""
    gaps = guess["gaps"].get(guess[role], 0)
    return f"{line}: {gaps:,} of those looked at" if gaps else f"# {line}"


def _dimension(column: Column, beside: Path, folder: Path, *, active: bool) -> str:
    """Return a section; a hierarchy file of the column's name beside the data is used."""
    import os

    name = column.name
    off = "" if active else "# "
    found = next((beside / f"{name}{s}" for s in (".hrc", ".txt") if (beside / f"{name}{s}").is_file()), None)
    lines = [f"{off}[dimensions.{_key(name)}]"]
    if found is not None:
        lines.append(f"{off}hierarchy = {_text(os.path.relpath(found, folder))}")
    else:
        lines.append('# hierarchy = "codes.hrc"    # how its codes add up; left out, all add up to the total')
    if found is None and column.digits:
        lines.append("# digits = [1, 1]    # instead: how many digits each level of the codes adds")
    if column.gaps:
        lines.append(f'{off}missing = ["unknown"]    # a code of their own for {column.gaps:,} records without one')
    return "\n".join(lines) + "\n"


_HEAD = """\
# A job for cellguard. Look through it, then:   cellguard protect THIS-FILE --dry-run
#                                               cellguard protect THIS-FILE
# Lines that begin with # are remarks, or choices that are switched off.

name = "{name}"    # names the files of the release
seed = 1    # the same seed gives the same release

[data]
# Columns found:
{about}
file = {file}"""

_RULES = """\
[[rules]]
rule = "p_percent"    # another contributor must not be able to estimate the largest to within p per cent
p = 10

[[rules]]
rule = "min_frequency"    # fewer than n contributors
n = 3
percent = 10    # how far such a cell must stay uncertain, in per cent of its value

# [[rules]]
# rule = "dominance"    # the n largest contributors hold more than k per cent
# n = 2
# k = 85
"""

_COUNTS = """\
[[rules]]
rule = "min_frequency"    # counts below n are sensitive
n = 3
percent = 100    # how far such a cell must stay uncertain, in per cent of its value
"""

_REST = """\
# Several linked tables instead of one with all dimensions:
# [[tables]]
# dimensions = ["...", "..."]

{rules}
[method]
name = "suppress"    # or intervals, round, perturb, adjust
# rounds = 30    # suppress: more rounds find cheaper patterns
# base = 5    # round and perturb

# [[attackers]]    # somebody who knows his own contribution
# name = "firm 12"
# knows = [{{cell = {{region = "N1"}}, contribution = 40.0}}]

# [compare]    # how the other methods would do, in the internal report

[limits]
time_limit_s = 600

[output]
folder = {folder}    # gets two folders: public, and internal (confidential)
formats = ["csv", "xlsx"]    # also parquet, jj
"""
