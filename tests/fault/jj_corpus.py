"""Malformed JJ files, each a small change of one good file, with the error that each must get.

Every value of the good file holds the digits 7391 and no other number does: a message that shows
them shows a confidential value.
"""

from __future__ import annotations

import gzip
from typing import NamedTuple

from cellguard.exceptions import AdditivityError, FormatError, InputError, LevelError

SECRET = "7391"
CELLS = [
    "0 73910 1 u 0 99999 20 30 0",
    "1 273910 1 s 0 999999 0 0 0",
    "2 347820 1 s 0 9999999 0 0 0",
    "3 17391 1 z 0 99999 0 0 0",
    "4 330429 1 m 0 999999 5 5 40",
]
RELATIONS = ["0 3 : 2 (-1) 0 (1) 1 (1)", "0.0 3 : 2 (-1) 3 (1) 4 (1)"]


class Case(NamedTuple):
    """A malformed file."""

    name: str
    content: bytes
    error: type[InputError]
    """The class the error must have."""
    text: str
    """What the message must say."""
    suffix: str = ".jj"


def jj(cells=CELLS, relations=RELATIONS, *, n=None, m=None, head="0") -> bytes:
    lines = [head, len(cells) if n is None else n, *cells, len(relations) if m is None else m, *relations]
    return ("\n".join(map(str, lines)) + "\n").encode("latin-1")


GOOD = jj()


def cell(line: str, at: int = 0) -> bytes:
    return jj([*CELLS[:at], line, *CELLS[at + 1 :]])


def relation(line: str, at: int = 0) -> bytes:
    return jj(relations=[*RELATIONS[:at], line, *RELATIONS[at + 1 :]])


def bomb() -> bytes:
    """Return a few hundred kilobytes that unpack to more than a gigabyte of blanks."""
    return gzip.compress(b" " * (1 << 22), 9) * 300


def _files() -> list[Case]:
    return [
        Case("empty", b"", FormatError, "is empty"),
        Case("blanks", b" \n\t\r\n" * 40, FormatError, "is empty"),
        Case("binary", bytes(range(256)) * 40, FormatError, "binary"),
        Case("late-binary", GOOD + b"\0" * 9000, FormatError, "jj:"),
        Case("utf-16", GOOD.decode().encode("utf-16"), FormatError, "binary"),
        Case("byte-order-mark", b"\xef\xbb\xbf" + GOOD, FormatError, "first line"),
        Case("prose", b"Dear colleague,\nplease find the table attached.\n", FormatError, "first line"),
        Case("csv", b"region,value\nN,73910\n", FormatError, "first line"),
        Case("accents", GOOD.replace(b"73910", "739\u00e90".encode("latin-1"), 1), FormatError, "jj:3: the value"),
        Case("gzip-named-jj", gzip.compress(GOOD), FormatError, "gz"),
        Case("not-gzip", GOOD, FormatError, "not a complete gzip file", ".jj.gz"),
        Case("empty-gzip", b"", FormatError, "empty", ".jj.gz"),
        Case("gzip-of-nothing", gzip.compress(b""), FormatError, "is empty", ".jj.gz"),
        Case("cut-gzip", gzip.compress(GOOD)[:-9], FormatError, "not a complete gzip file", ".jj.gz"),
        Case("cut-gzip-head", gzip.compress(GOOD)[:7], FormatError, "not a complete gzip file", ".jj.gz"),
        Case("broken-gzip", gzip.compress(GOOD)[:20] + b"\xff" * 40, FormatError, "gzip", ".jj.gz"),
        Case("gzip-with-tail", gzip.compress(GOOD) + b"tail", FormatError, "gzip", ".jj.gz"),
        Case("gzip-bomb", bomb(), FormatError, "unpacks to more than", ".jj.gz"),
    ]


def _counts() -> list[Case]:
    huge = 10**9
    return [
        Case("no-zero", jj(head="1"), FormatError, "first line of a JJ file is 0"),
        Case("only-a-zero", b"0\n", FormatError, "number of cells"),
        Case("no-relations", b"0\n1\n0 0 1 s 0 9 0 0 0\n", FormatError, "cut short"),
        Case("billion-cells", jj(n=huge), FormatError, "the file claims more cells than it can hold"),
        Case("billion-relations", jj(m=huge), FormatError, "the file has 2 relations, but"),
        Case("billion-parts", relation(f"0 {huge} : 2 (-1) 0 (1) 1 (1)"), FormatError, "the relation has 3 cells, but"),
        Case("endless-number", jj(n="9" * 5000), FormatError, "number of cells"),
        Case("endless-relations", jj(m="9" * 5000), FormatError, "number of relations"),
        Case("endless-parts", relation(f"0 {'9' * 5000} : 2 (-1)"), FormatError, "a relation line"),
        Case("negative-cells", jj(n=-5), FormatError, "number of cells"),
        Case("decimal-cells", jj(n="5.5"), FormatError, "number of cells"),
        Case("overflowing-cells", jj(n="1e999"), FormatError, "number of cells"),
        Case("superscript-cells", jj(n="5\u00b2"), FormatError, "number of cells"),
        Case("too-few-cells", jj(n=4), FormatError, "number of relations"),
        Case("too-many-cells", jj(n=6), FormatError, "a cell line has 9 fields"),
        Case("too-few-relations", jj(m=1), FormatError, "the file has 2 relations, but"),
        Case("too-many-relations", jj(m=3), FormatError, "the file has 2 relations, but"),
        Case("negative-relations", jj(m=-2), FormatError, "number of relations"),
    ]


def _cells() -> list[Case]:
    def word(place: int, text: str, at: int = 0) -> bytes:
        words = CELLS[at].split()
        words[place] = text
        return cell(" ".join(words), at)

    not_finite = [
        Case(f"{name}-{kind.replace('-', 'minus-')}", word(place, kind), FormatError, f"jj:3: the {name}")
        for place, name in ((1, "value"), (2, "cost"), (6, "lpl"), (7, "upl"), (8, "spl"))
        for kind in ("nan", "inf", "-inf", "1e999", "x", "1,5", "1_0", "0x10", "1s", "--1")
    ]
    return [
        *not_finite,
        Case("bound-nan", word(4, "nan"), FormatError, "jj:3: the lb"),
        Case("bound-word", word(5, "free"), FormatError, "jj:3: the ub"),
        Case("eight-fields", cell("0 73910 1 u 0 99999 20 30"), FormatError, "9 fields, this one 8"),
        Case("ten-fields", cell("0 73910 1 u 0 99999 20 30 0 0"), FormatError, "9 fields, this one 10"),
        Case("twice-the-same-cell", cell("0 273910 1 s 0 999999 0 0 0", 1), FormatError, "cell 1 is expected"),
        Case("gap", cell("7 273910 1 s 0 999999 0 0 0", 1), FormatError, "cell 1 is expected"),
        Case("unknown-status", word(3, "q"), FormatError, "the status is none of"),
        Case("number-as-status", word(3, "1"), FormatError, "the status is none of"),
        Case("long-status", word(3, "su"), FormatError, "the status is none of"),
        Case("status-in-the-value", cell("0 s 1 1 0 99999 20 30 0"), FormatError, "jj:3:"),
        Case("brackets-in-a-cell", cell("0 (73910) 1 u 0 99999 20 30 0"), FormatError, "jj:3: the value"),
        Case("colon-in-a-cell", cell("0:73910 1 u 0 99999 20 30 0"), FormatError, "jj:3:"),
        Case("lb-above", word(4, "80000"), InputError, "cell 0: the lower bound lies above the value"),
        Case("ub-below", word(5, "100"), InputError, "cell 0: the upper bound lies below the value"),
        Case("negative-level", word(6, "-1"), LevelError, "cell 0: the lower level"),
        Case("negative-sliding", word(8, "-1"), LevelError, "cell 0: the sliding level"),
        Case("negative-cost", word(2, "-1"), InputError, "cell 0: the weight"),
        Case("impossible-lower", word(6, "73911"), LevelError, "no release can meet it"),
        Case("impossible-upper", word(7, "88888"), LevelError, "no release can meet it"),
        Case("impossible-sliding", word(8, "100001"), LevelError, "no release can meet it"),
        Case("not-additive", word(1, "73919"), AdditivityError, "cell 2 = cell 0 + cell 1"),
        Case(
            "overflowing", jj(["0 1e308 1 u 0 inf 2 3 0", "1 1e308 1 s 0 inf 0 0 0", *CELLS[2:]]), InputError, "cell 0"
        ),
    ]


def _relations() -> list[Case]:
    return [
        Case("no-colon", relation("0 3 2 (-1) 0 (1) 1 (1)"), FormatError, "jj:9: a relation line starts"),
        Case("two-colons", relation("0 3 : 2 : (-1) 0 (1) 1 (1)"), FormatError, "jj:9:"),
        Case(
            "moved-colon", jj(relations=["0 3 2 (-1) 0 (1) 1 (1)", "0 : 3 : 2 (-1) 3 (1) 4 (1)"]), FormatError, "jj:9"
        ),
        Case("no-rhs", relation("3 : 2 (-1) 0 (1) 1 (1)"), FormatError, "jj:9: a relation line starts"),
        Case("rhs-word", relation("x 3 : 2 (-1) 0 (1) 1 (1)"), FormatError, "jj:9: a relation line starts"),
        Case("rhs-infinite", relation("inf 3 : 2 (-1) 0 (1) 1 (1)"), FormatError, "jj:9: a"),
        Case("rhs-nan", relation("nan 3 : 2 (-1) 0 (1) 1 (1)"), FormatError, "jj:9"),
        Case("fewer-parts", relation("0 3 : 2 (-1) 0 (1)"), FormatError, "the relation has 2 cells, but"),
        Case("more-parts", relation("0 2 : 2 (-1) 0 (1) 1 (1)"), FormatError, "the relation has 3 cells, but"),
        Case("shifted-parts", jj(relations=["0 2 : 2 (-1) 0 (1) 0 4 : 2 (-1) 3 (1) 4 (1)", ""]), FormatError, "jj:9:"),
        Case("unknown-cell", relation("0 3 : 5 (-1) 0 (1) 1 (1)"), FormatError, "outside 0..4"),
        Case("negative-cell", relation("0 3 : -2 (-1) 0 (1) 1 (1)"), FormatError, "outside 0..4"),
        Case("decimal-cell", relation("0 3 : 2.5 (-1) 0 (1) 1 (1)"), FormatError, "jj:9:"),
        Case("superscript-cell", relation("0 3 : \u00b2 (-1) 0 (1) 1 (1)"), FormatError, "jj:9:"),
        Case("sign-word", relation("0 3 : 2 (minus) 0 (1) 1 (1)"), FormatError, "coefficient is not a finite number"),
        Case("sign-nan", relation("0 3 : 2 (nan) 0 (1) 1 (1)"), FormatError, "coefficient is not a finite number"),
        Case("sign-infinite", relation("0 3 : 2 (inf) 0 (1) 1 (1)"), FormatError, "jj:9: a"),
        Case("no-brackets", relation("0 3 : 2 -1 0 1 1 1"), FormatError, "jj:9:"),
        Case("wrong-sign", relation("0 3 : 2 (1) 0 (1) 1 (1)"), AdditivityError, "do not hold"),
        Case("tail", GOOD + b"1 2 3\n", FormatError, "the file has 3 relations, but"),
        Case("word-after-the-end", GOOD + b"end\n", FormatError, "the file has 3 relations, but"),
    ]


CORPUS = [*_files(), *_counts(), *_cells(), *_relations()]
