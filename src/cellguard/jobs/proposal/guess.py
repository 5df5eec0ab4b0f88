"""Guess the role of each column in a job by name and shape, with the reason, and what a user must confirm.

A wrong guess must not harm respondents. A column that identifies respondents is never a dimension and never the
value: that would publish them one by one. At most it becomes the holding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cellguard.jobs.proposal.columns import Column, is_nested, is_same_classification
from cellguard.tabulation.template import find_total

__all__ = [
    "COUNTS",
    "LARGEST",
    "VALUES",
    "DimensionGuess",
    "Guess",
    "describe_strays",
    "explain_identifier",
    "guess",
    "split_name",
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
"""Words for respondents."""
_NUMBERS = (
    *("id", "ident", "identifier", "no", "nr", "num", "number", "key", "ref", "group", "gruppe", "grupo", "parent"),
)
"""Words that may number respondents, or something harmless such as product groups."""
_ENDINGS = ("nr", "nummer", "number", "id", "ident", "numero")
"""Ends of words that number respondents: ``Betriebsnr``, ``firmid``."""
_CLASSES = (
    *("region", "country", "county", "state", "area", "zone", "sector", "activity", "industry", "branch", "product"),
    *("size", "class", "type", "kind", "category", "form", "status", "sex", "gender", "age", "nace", "nuts", "land"),
)
"""Words for shared attributes: because of one of them, ``region_name`` does not name a respondent."""
_NO_AMOUNTS = (
    *("year", "jahr", "annee", "ano", "date", "time", "period", "month", "zip", "postcode", "plz", "lat", "lon"),
)
_MAX_CODES = 300
_SHARED = 20
"""Codes shared by at least this many records on average do not name respondents."""
COUNTS = (
    *("nobs", "obs", "freq", "frequency", "count", "counts", "contributors", "n", "nb", "number", "units", "firms"),
    *("enterprises", "companies", "establishments", "businesses", "holdings", "farms", "respondents", "unternehmen"),
    *("betriebe", "entreprises", "etablissements", "empresas", "imprese", "bedrijven"),
)
"""Words for the number of contributors to a cell."""
LARGEST = ("max", "top", "largest", "maxscore", "dominant")
"""Words for the largest contributions of a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionGuess:
    """A column of codes, with its coarser levels in other columns."""

    column: Column
    levels: tuple[str, ...] = ()
    """Columns from coarse to fine, the dimension last; empty if there is no coarser one."""
    cells: int = 0
    """Codes of all levels, and the total."""
    why: str = ""
    risky: bool = False
    """Whether so few records share a code that it may name respondents."""

    @property
    def unlikely(self) -> bool:
        """Whether tables rarely use it: codes that may name respondents, and days."""
        return self.risky or self.column.dates


@dataclass(kw_only=True)
class Guess:
    """The guesses, with their reasons."""

    value: str | None = None
    weight: str | None = None
    holding: str | None = None
    comma: bool = False
    dimensions: list[DimensionGuess] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict)
    """Column -> its guessed role, or why it has none."""
    unconfirmed: list[str] = field(default_factory=list)
    """Guesses that could do harm if they are wrong: a user must confirm them."""
    added_up: list[str] = field(default_factory=list)
    """Columns with the code of a total: the file may be a ready table, not records."""


def guess(columns: Sequence[Column]) -> Guess:
    """Guess which column is the value, the holding and the weight, and which are dimensions."""
    out = Guess()
    identifying = {c.name: why for c in columns if (why := explain_identifier(c))}
    _guess_value_and_weight(out, columns, identifying)
    _guess_holding(out, columns, identifying)
    taken = {out.value, out.weight, *identifying}
    codes = [c for c in columns if c.name not in taken]
    fits = [c for c in codes if _are_codes(c)]
    out.dimensions = _guess_dimensions(out, fits)
    for c in codes:
        out.why.setdefault(c.name, _explain_unused(c))
    out.comma = any(c.comma for c in columns if c.name in (out.value, out.weight))
    out.why |= {c.name: out.why[c.name] + describe_strays(c) for c in columns if c.name in out.why}
    out.added_up = [c.name for c in fits if find_total(c.codes) is not None]
    separated = [c.name for c in columns if c.has_thousands and c.name not in (d.column.name for d in out.dimensions)]
    out.why |= dict.fromkeys(separated, "not used: numbers with signs between thousands; save the file without them")
    if separated and out.value is None:
        out.unconfirmed.append("value")
    return out


def describe_strays(c: Column) -> str:
    """Describe the entries of a numeric column that are not numbers, without showing them."""
    number, line = c.strays
    if not number:
        return ""
    return f"; {number:,} {'entry is not a number' if number == 1 else 'entries are not numbers'}, in line {line} first"


def split_name(name: str) -> list[str]:
    """Return the words of a column's name: ``EntName_2`` is ent, name, 2."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word.lower() for word in re.split(r"[^0-9A-Za-zÀ-ÿ]+", spaced) if word]


def explain_identifier(c: Column) -> str:
    """Return why a column may identify respondents; nothing if it does not."""
    words = split_name(c.name)
    shared = c.records_per_code >= _SHARED
    classes = shared and any(w in _CLASSES for w in words)
    several = c.distinct > 1 or c.gaps > 0
    if any(w in _IDENTIFY for w in words) and (not c.numeric or c.whole) and several and not classes:
        return "its name suggests that it identifies respondents"
    if any(w in _NUMBERS for w in words) and (not c.numeric or c.whole) and not shared and c.distinct > 1:
        return "its name suggests numbers of respondents, and few records share a code"
    if c.dense and c.filled > 1 and not any(word in c.name.lower() for word in VALUES):
        return "it is a number of the record"
    if not c.numeric and c.distinct > 1 and c.records_per_code < 2:
        return "nearly every record has its own entry"
    if c.whole and c.records_per_code < 2 and any(w.endswith(_ENDINGS) for w in words):
        return "its name suggests numbers of respondents, and nearly every record has its own"
    return ""


def _guess_value_and_weight(out: Guess, columns: Sequence[Column], identifying: dict[str, str]) -> None:
    """Find the weight and the value by name, or the value by its shape, which a user must confirm."""
    numbers = [c for c in columns if c.numeric and c.name not in identifying]
    named = next((c for word in _WEIGHTS for c in numbers if word in c.name.lower() and not c.negative), None)
    if named is not None:
        out.weight, out.why[named.name] = named.name, "weight: its name suggests it"
    rest = [c for c in numbers if c is not named and not any(w in _NO_AMOUNTS for w in split_name(c.name))]
    amounts = [c for c in rest if c.distinct > 20]
    best = next((c for word in VALUES for c in rest if word in c.name.lower() and c.distinct > 2), None)
    if best is not None:
        out.value, out.why[best.name] = best.name, "value: numbers, and its name suggests an amount"
    elif amounts:
        best = max(amounts, key=lambda c: (not c.whole, c.distinct))
        out.value, out.why[best.name] = best.name, "value: numbers with the most different entries"
        out.unconfirmed.append("value")
    for c in amounts:
        if c is not best:
            out.why[c.name] = "not used: numbers; possibly the value of another table"


def _guess_holding(out: Guess, columns: Sequence[Column], identifying: dict[str, str]) -> None:
    """Find the holding among the identifying columns, so that records of one contributor are joined."""
    found = [c for c in columns if c.name in identifying]
    found.sort(key=lambda c: (not any(word in c.name.lower() for word in _HOLDINGS), c.distinct))
    for c in found:
        out.why[c.name] = f"not used: {identifying[c.name]}; not a dimension"
    shared = [c for c in found if c.distinct < c.filled or any(word in c.name.lower() for word in _HOLDINGS)]
    if shared:
        name = out.holding = shared[0].name
        out.why[name] = f"holding: {identifying[name]}; records with the same entry count as one contributor"


def _are_codes(c: Column) -> bool:
    return 2 <= c.distinct <= min(_MAX_CODES, c.filled - 1) and c.records_per_code >= 3 and (not c.numeric or c.whole)


def _explain_unused(c: Column) -> str:
    if c.distinct < 2:
        return "not used: all entries are the same"
    if c.numeric and not c.whole:
        return "not used: numbers with decimals"
    if c.records_per_code < 3:
        return "not used: few records share a code"
    return f"not used: more than {_MAX_CODES} codes"


def _guess_dimensions(out: Guess, fits: Sequence[Column]) -> list[DimensionGuess]:
    """Join nested columns into one dimension; sort hierarchies first, then texts, then numbers."""
    left = sorted(fits, key=lambda c: -c.distinct)
    made: list[DimensionGuess] = []
    while left:
        fine = left.pop(0)
        for label in [c for c in left if is_same_classification(fine, c)]:
            left.remove(label)
            out.why[label.name] = f"not used: the codes of {fine.name!r} under other names"
        chain = [fine]
        for c in list(left):
            if is_nested(chain[-1], c):
                chain.append(c)
                left.remove(c)
        made.append(_merge_levels(out, chain))
    place = {c.name: i for i, c in enumerate(fits)}

    def order(d: DimensionGuess) -> tuple[bool, bool, bool, int]:
        first = min(place[name] for name in (d.column.name, *d.levels))
        return d.unlikely, not d.levels, d.column.numeric and not d.levels, first

    return sorted(made, key=order)


def _merge_levels(out: Guess, chain: Sequence[Column]) -> DimensionGuess:
    fine = chain[0]
    cells = 1 + sum(c.distinct for c in chain)
    risky = fine.records_per_code < 10
    why = f"dimension: {fine.distinct} codes, each of {fine.records_per_code:,.0f} records on average"
    levels = tuple(c.name for c in reversed(chain)) if len(chain) > 1 else ()
    if levels:
        why += f"; {' > '.join(levels)} nest"
    out.why |= {c.name: f"a level of {fine.name!r}: each of its codes belongs to one code here" for c in chain[1:]}
    if risky:
        why += "; codes with so few records may be respondents"
    if fine.dates:
        why += "; days are rarely a dimension"
    out.why[fine.name] = why
    return DimensionGuess(column=fine, levels=levels, cells=cells, why=why, risky=risky)
