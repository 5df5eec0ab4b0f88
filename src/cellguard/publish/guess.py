"""Which column plays which part in a job: guessed by name and shape, with the reason, and what must be confirmed.

A wrong guess must not harm anybody. A column that identifies respondents is never a dimension and never the
value: it would publish them one by one. It says who belongs together, at most.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cellguard.data.template import total_among
from cellguard.publish.columns import Column, guessed_to_be_same, guessed_to_nest

__all__ = [
    "COUNTS",
    "LARGEST",
    "VALUES",
    "DimensionGuess",
    "Guess",
    "guess",
    "guessed_to_identify",
    "strays_in_guessed_numbers",
    "words_to_guess_by",
]

VALUES = (
    *("turnover", "value", "amount", "sales", "revenue", "income", "investment", "output", "production", "wage"),
    *("salary", "cost", "price", "employees", "umsatz", "wert", "chiffre", "montant", "valor", "omzet", "fatturato"),
)
_WEIGHTS = ("weight", "wgt", "grossing", "gewicht", "poids", "peso", "ponderation")
_HOLDINGS = ("holding", "concern", "konzern", "parent", "group", "gruppe", "grupo", "gruppo")
_IDENTIFY = (
    *("name", "names", "nom", "firm", "firma", "company", "enterprise", "entreprise", "establishment", "respondent"),
    *("ent", "siren", "siret", "vat", "ein", "lei", "duns", "person", "household", "taxpayer", "owner", "email"),
    *("phone", "address", "holding", "concern", "konzern", "unternehmen", "betrieb", "empresa", "azienda", "bedrijf"),
    *("utility", "plant", "contributor", "respondant", "reporter", "employer"),
)
"""Words for who answered."""
_NUMBERS = (
    *("id", "ident", "identifier", "no", "nr", "num", "number", "key", "ref", "group", "gruppe", "grupo", "parent"),
)
"""Words that may number respondents, or mean something harmless, such as a group of products."""
_ENDINGS = ("nr", "nummer", "number", "id", "ident", "numero")
"""Ends of words that number respondents: ``Betriebsnr``, ``firmid``."""
_CLASSES = (
    *("region", "country", "county", "state", "area", "zone", "sector", "activity", "industry", "branch", "product"),
    *("size", "class", "type", "kind", "category", "form", "status", "sex", "gender", "age", "nace", "nuts", "land"),
)
"""Words for what is shared: with one of them, ``region_name`` is no name of a respondent."""
_NO_AMOUNTS = (
    *("year", "jahr", "annee", "ano", "date", "time", "period", "month", "zip", "postcode", "plz", "lat", "lon"),
)
_MAX_CODES = 300
_SHARED = 20
"""Codes that so many records share, on the average, name no respondent."""
COUNTS = (
    *("nobs", "obs", "freq", "frequency", "count", "counts", "contributors", "n", "nb", "number", "units", "firms"),
)
"""Words for how many contributors a cell has."""
LARGEST = ("max", "top", "largest", "maxscore", "dominant")
"""Words for the largest contributions of a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionGuess:
    """A column of codes, with coarser levels of it in other columns."""

    column: Column
    levels: tuple[str, ...] = ()
    """Columns from coarse to fine, the dimension last; empty where there is no coarser one."""
    cells: int = 0
    """Codes of all levels, and the total."""
    why: str = ""
    risky: bool = False
    """So few records share a code that it may name respondents."""

    @property
    def unlikely(self) -> bool:
        """Whether few tables have it: what may name respondents, and days."""
        return self.risky or self.column.dates


@dataclass(kw_only=True)
class Guess:
    """What was guessed, and why."""

    value: str | None = None
    weight: str | None = None
    holding: str | None = None
    comma: bool = False
    dimensions: list[DimensionGuess] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict)
    """Column -> what it was taken for, or why it was left alone."""
    unconfirmed: list[str] = field(default_factory=list)
    """Guesses that could harm if they are wrong: somebody must look at them."""
    added_up: list[str] = field(default_factory=list)
    """Columns with the code of a total: the file may be a table already, not records."""


def guess(columns: Sequence[Column]) -> Guess:
    """Guess which column is the value, the holding and the weight, and which are dimensions."""
    out = Guess()
    identifying = {c.name: why for c in columns if (why := guessed_to_identify(c))}
    _guess_value_and_weight(out, columns, identifying)
    _guess_holding(out, columns, identifying)
    taken = {out.value, out.weight, *identifying}
    codes = [c for c in columns if c.name not in taken]
    fits = [c for c in codes if _guessed_as_codes(c)]
    out.dimensions = _guess_dimensions(out, fits)
    for c in codes:
        out.why.setdefault(c.name, _why_not_guessed(c))
    out.comma = any(c.comma for c in columns if c.name in (out.value, out.weight))
    out.why |= {c.name: out.why[c.name] + strays_in_guessed_numbers(c) for c in columns if c.name in out.why}
    out.added_up = [c.name for c in fits if total_among(c.codes) is not None]
    return out


def strays_in_guessed_numbers(c: Column) -> str:
    """Say which entries of a column of numbers are none; what they are is not told."""
    number, line = c.strays
    if not number:
        return ""
    return f"; {number:,} {'entry is no number' if number == 1 else 'entries are no numbers'}, in line {line} first"


def words_to_guess_by(name: str) -> list[str]:
    """Return the words of a column's name: ``EntName_2`` is ent, name, 2."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word.lower() for word in re.split(r"[^0-9A-Za-zÀ-ÿ]+", spaced) if word]


def guessed_to_identify(c: Column) -> str:
    """Say why a column may identify respondents; nothing where it does not."""
    words = words_to_guess_by(c.name)
    shared = c.records_per_code >= _SHARED
    classes = shared and any(w in _CLASSES for w in words)
    several = c.distinct > 1 or c.gaps > 0
    if any(w in _IDENTIFY for w in words) and (not c.numeric or c.whole) and several and not classes:
        return "by its name it says who answered"
    if any(w in _NUMBERS for w in words) and (not c.numeric or c.whole) and not shared and c.distinct > 1:
        return "by its name it numbers respondents, and few records share a code"
    if c.dense and c.filled > 1 and not any(word in c.name.lower() for word in VALUES):
        return "it numbers the records"
    if not c.numeric and c.distinct > 1 and c.records_per_code < 2:
        return "nearly every record has an entry of its own"
    if c.whole and c.records_per_code < 2 and any(w.endswith(_ENDINGS) for w in words):
        return "by its name it numbers respondents, and nearly every record has a number of its own"
    return ""


def _guess_value_and_weight(out: Guess, columns: Sequence[Column], identifying: dict[str, str]) -> None:
    """Find the weight and the value: by name, or the value by its shape, which must be confirmed."""
    numbers = [c for c in columns if c.numeric and c.name not in identifying]
    named = next((c for word in _WEIGHTS for c in numbers if word in c.name.lower() and not c.negative), None)
    if named is not None:
        out.weight, out.why[named.name] = named.name, "weight: by its name"
    rest = [c for c in numbers if c is not named and not any(w in _NO_AMOUNTS for w in words_to_guess_by(c.name))]
    amounts = [c for c in rest if c.distinct > 20]
    best = next((c for word in VALUES for c in rest if word in c.name.lower() and c.distinct > 2), None)
    if best is not None:
        out.value, out.why[best.name] = best.name, "value: numbers, and by its name an amount"
    elif amounts:
        best = max(amounts, key=lambda c: (not c.whole, c.distinct))
        out.value, out.why[best.name] = best.name, "value: the numbers with the most different entries"
        out.unconfirmed.append("value")
    for c in amounts:
        if c is not best:
            out.why[c.name] = "left alone: numbers; it could be the value of another table"


def _guess_holding(out: Guess, columns: Sequence[Column], identifying: dict[str, str]) -> None:
    """Find the holding among what identifies: records of one contributor are one."""
    found = [c for c in columns if c.name in identifying]
    found.sort(key=lambda c: (not any(word in c.name.lower() for word in _HOLDINGS), c.distinct))
    for c in found:
        out.why[c.name] = f"left alone: {identifying[c.name]}; it is no dimension"
    shared = [c for c in found if c.distinct < c.filled or any(word in c.name.lower() for word in _HOLDINGS)]
    if shared:
        name = out.holding = shared[0].name
        out.why[name] = f"holding: {identifying[name]}; records with one entry count as one contributor"


def _guessed_as_codes(c: Column) -> bool:
    return 2 <= c.distinct <= min(_MAX_CODES, c.filled - 1) and c.records_per_code >= 3 and (not c.numeric or c.whole)


def _why_not_guessed(c: Column) -> str:
    if c.distinct < 2:
        return "left alone: one entry only"
    if c.numeric and not c.whole:
        return "left alone: numbers with decimals"
    if c.records_per_code < 3:
        return "left alone: few records share a code"
    return f"left alone: more than {_MAX_CODES} codes"


def _guess_dimensions(out: Guess, fits: Sequence[Column]) -> list[DimensionGuess]:
    """Join columns that nest into one dimension; order: trees first, then texts, then numbers."""
    left = sorted(fits, key=lambda c: -c.distinct)
    made: list[DimensionGuess] = []
    while left:
        fine = left.pop(0)
        for label in [c for c in left if guessed_to_be_same(fine, c)]:
            left.remove(label)
            out.why[label.name] = f"left alone: the codes of {fine.name!r} in other words"
        chain = [fine]
        for c in list(left):
            if guessed_to_nest(chain[-1], c):
                chain.append(c)
                left.remove(c)
        made.append(_guessed_dimension_of_levels(out, chain))
    place = {c.name: i for i, c in enumerate(fits)}

    def order(d: DimensionGuess) -> tuple[bool, bool, bool, int]:
        first = min(place[name] for name in (d.column.name, *d.levels))
        return d.unlikely, not d.levels, d.column.numeric and not d.levels, first

    return sorted(made, key=order)


def _guessed_dimension_of_levels(out: Guess, chain: Sequence[Column]) -> DimensionGuess:
    fine = chain[0]
    cells = 1 + sum(c.distinct for c in chain)
    risky = fine.records_per_code < 10
    why = f"dimension: {fine.distinct} codes, each of {fine.records_per_code:,.0f} records on the average"
    levels = tuple(c.name for c in reversed(chain)) if len(chain) > 1 else ()
    if levels:
        why += f"; {' > '.join(levels)} nest"
    out.why |= {c.name: f"a level of {fine.name!r}, of which each code belongs to one code here" for c in chain[1:]}
    if risky:
        why += "; so few may be respondents"
    if fine.dates:
        why += "; days, by which few tables are made"
    out.why[fine.name] = why
    return DimensionGuess(column=fine, levels=levels, cells=cells, why=why, risky=risky)
