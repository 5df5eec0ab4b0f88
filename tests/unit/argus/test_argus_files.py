"""The files of tau-ARGUS: what is read is what was written, and mistakes have a place."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cellguard._io.hst import Decision, read_hst, write_hst
from cellguard._io.trees.outline import parse_hrc_outline
from cellguard.argus.formats import arb
from cellguard.argus.formats.data import (
    parse_numbers,
    read_argus_columns,
    strip_codes,
    write_argus_columns,
)
from cellguard.argus.formats.lists import Recoding, read_argus_cdl_file, read_grc, write_argus_hrc_file
from cellguard.argus.formats.rda import Metadata, Variable, read_rda, write_rda
from cellguard.exceptions import CellguardError, FormatError, UnknownCodeError

RDA = """\
Size 9  2 99
  <RECODEABLE>
Region 12  2 "99" " 0"
  <RECODABLE>
  <TOTCODE> "T"
  <CODELIST> "region.cdl"
  <HIERARCHICAL>
  <HIERCODELIST> "region.hrc"
  <HIERLEADSTRING> "@"
  <DISTANCE>  2  4  4  4  4
Code 4  5 99999
  <RECODEABLE>
  <HIERARCHICAL>
  <HIERLEVELS>  3 1 1 0 0
Wgt 15  4 9999
  <DECIMALS>  1
  <WEIGHT>
Var2 28  10 9999999999
  <NUMERIC>
  <DECIMALS>  2
Request 99  1
  <REQUEST>  "1" "2"
"""


def file(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# ---------------------------------------------------------------- rda


def test_rda_of_microdata(tmp_path):
    meta = read_rda(file(tmp_path, "a.rda", RDA))
    assert meta.separator == ""
    assert meta["Size"] == Variable(name="Size", start=9, width=2, missing=("99",), recodable=True)
    region = meta["REGION"]
    assert (region.start, region.width, region.missing) == (12, 2, ("99", " 0"))
    assert (region.total_code, region.code_list, region.hierarchy, region.lead) == (
        "T",
        "region.cdl",
        "region.hrc",
        "@",
    )
    assert meta["Code"].levels == (3, 1, 1)
    assert [v.name for v in meta.select_role("weight")] == ["Wgt"]
    assert meta["Var2"].numeric
    assert meta["Var2"].decimals == 2
    assert meta["Request"].request_codes == ("1", "2")
    with pytest.raises(UnknownCodeError, match="did you mean 'Region'"):
        meta["Regio"]


def test_rda_of_a_table(tmp_path):
    text = '<SEPARATOR> ","\r\n<SAFE> "S"\r\n<UNSAFE> "U"\r\n<PROTECT> "Z"\r\nregion "99"\r\n <RECODEABLE>\r\nfreq\r\n'
    text += " <NUMERIC>\r\nlpl\r\n <NUMERIC> <LOWERPL>\r\ntop1\r\n <MAXSCORE>\r\ntop2\r\n <MAXSCORE>\r\n"
    meta = read_rda(file(tmp_path, "a.rda", text), table=True)
    assert (meta.separator, meta.protect) == (",", "Z")
    assert meta["region"].missing == ("99",)
    assert meta["lpl"].role == "lower"
    assert [v.name for v in meta.select_role("top")] == ["top1", "top2"]


def test_rda_unquoted_arguments(tmp_path):
    text = '<SEPARATOR> ";"\nregion 1\n <HIERCODELIST> r.hrc\n <HIERLEADSTRING> @\nx 6 999999\n <NUMERIC>\n'
    meta = read_rda(file(tmp_path, "a.rda", text))
    assert meta["region"].hierarchy == "r.hrc"
    assert (meta["x"].start, meta["x"].width, meta["x"].missing) == (None, 6, ("999999",))


def test_rda_round_trip(tmp_path):
    variables = (
        Variable(name="region", missing=("99",), recodable=True, total_code="Total", hierarchical=True),
        Variable(name="x", numeric=True, decimals=2),
        Variable(name="n", role="frequency"),
        Variable(name="s", role="status"),
    )
    meta = Metadata(variables=variables, separator=";", protect="Z")
    write_rda(tmp_path / "b.rda", meta)
    assert read_rda(tmp_path / "b.rda", table=True) == meta


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "describes no variable"),
        ("<RECODEABLE>\nx 1 2\n", r"a.rda:1: <RECODEABLE> stands before"),
        ("x 1\n", "a.rda:1: a variable has name, first column, width"),
        ("x one 2\n", "a.rda:1: the place or width"),
        ("x 0 2\n", "counted from 1"),
        ("x 1 2\n <NUMERIK>\n", r"a.rda:2: unknown tag <NUMERIK>.*\n.*NUMERIC"),
        ("x 1 5\n <HIERLEVELS> 3 1\n", "a.rda:2: <HIERLEVELS> sum to 4; the width is 5"),
        ("x 1 2\nX 3 2\n", "'x' is listed twice"),
        ("x 1 2\n <DECIMALS> two\n", "a.rda:2: <DECIMALS> is not a whole number"),
        ("x 1 2\n <NUMERIC> > 2\n", "tags look like"),
    ],
)
def test_rda_mistakes(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        read_rda(file(tmp_path, "a.rda", text))


# ---------------------------------------------------------------- data


META = Metadata(
    variables=(
        Variable(name="region", start=1, width=3, recodable=True),
        Variable(name="x", start=5, width=6, numeric=True, missing=("999999",)),
    )
)
COMMA = Metadata(variables=(Variable(name="region"), Variable(name="x", missing=("-9",))), separator=";")


def test_fixed_width(tmp_path):
    path = file(tmp_path, "a.asc", "  A  12.50\r\nB12 999999\r\nC      3,5\r\n D\t     -1\r\n")
    columns = read_argus_columns(path, META)
    assert strip_codes(columns["region"]).to_pylist() == ["A", "B12", "C", "D"]
    assert columns["region"].to_pylist() == ["  A", "B12", "C  ", " D\t"]
    x = parse_numbers(columns["x"], path, META["x"])
    assert np.array_equal(x, [12.5, np.nan, 3.5, -1], equal_nan=True)


def test_fixed_width_latin1_and_utf8(tmp_path):
    text = "Köl     12\nÅbo      7\n"
    for encoding in ("utf-8", "latin-1"):
        path = file(tmp_path, "a.asc", text.encode(encoding))
        columns = read_argus_columns(path, META)
        assert columns["region"].to_pylist() == ["Köl", "Åbo"]
        assert parse_numbers(columns["x"], path, META["x"]).tolist() == [12, 7]


def test_a_line_of_wrong_length_is_named(tmp_path):
    path = file(tmp_path, "a.asc", "  A  12.50\n  B  12.5\n")
    with pytest.raises(FormatError, match=r"a.asc:2: the line has 9 characters; 10 are needed") as error:
        read_argus_columns(path, META)
    assert "12.5" not in str(error.value)
    path = file(tmp_path, "a.asc", "  A  12.50\n  B  12.505\n")
    with pytest.raises(FormatError, match=r"a.asc:2: the line has 11 characters"):
        read_argus_columns(path, META)
    path = file(tmp_path, "a.asc", "  A  12.50\n  B  12.50   \n")  # blanks at the end do no harm
    assert len(read_argus_columns(path, META)["x"]) == 2


def test_separated_with_comma_decimals_and_quotes(tmp_path):
    path = file(tmp_path, "a.csv", '"A";1,5\r\r\nB;-9\r\r\n"C;D"; 2\r\r\n')
    columns = read_argus_columns(path, COMMA)
    assert columns["region"].to_pylist() == ["A", "B", "C;D"]
    assert np.array_equal(parse_numbers(columns["x"], path, COMMA["x"]), [1.5, np.nan, 2], equal_nan=True)


def test_separated_mistakes_show_no_record(tmp_path):
    path = file(tmp_path, "a.csv", "A;1\nB;2;secret\n")
    with pytest.raises(FormatError, match=r"a.csv:2: the line has 3 columns; the metadata lists 2") as error:
        read_argus_columns(path, COMMA)
    assert "secret" not in str(error.value)
    path = file(tmp_path, "a.csv", "A;1\nB;7x7\n")
    with pytest.raises(FormatError, match=r"a.csv:2: variable 'x' is not a number") as error:
        parse_numbers(read_argus_columns(path, COMMA)["x"], path, COMMA["x"])
    assert "7x7" not in str(error.value)
    with pytest.raises(FormatError, match="empty"):
        read_argus_columns(file(tmp_path, "a.csv", ""), COMMA)


def test_data_round_trip(tmp_path):
    columns = {"region": ["A", " B", "C12"], "x": ["1.5", "-2", "999999"]}
    write_argus_columns(tmp_path / "a.asc", COMMA, columns)
    again = read_argus_columns(tmp_path / "a.asc", COMMA)
    assert strip_codes(again["region"]).to_pylist() == ["A", "B", "C12"]
    assert strip_codes(again["x"]).to_pylist() == columns["x"]


# ---------------------------------------------------------------- lists


def test_cdl(tmp_path):
    labels = read_argus_cdl_file(file(tmp_path, "a.cdl", " 1,Groningen\r\n10,Zeeland, and more\r\nNr,North\r\n"))
    assert labels == {" 1": "Groningen", "10": "Zeeland, and more", "Nr": "North"}
    with pytest.raises(FormatError, match=r"c.cdl:2"):
        read_argus_cdl_file(file(tmp_path, "c.cdl", "a,b\nc\n"))


def test_hrc_round_trip(tmp_path):
    lines = [(0, "Nr"), (1, " 1"), (1, " 2"), (0, "Os"), (1, "Q"), (2, "Q1")]
    write_argus_hrc_file(tmp_path / "a.hrc", lines)
    assert [(d, c) for d, c, _ in parse_hrc_outline(tmp_path / "a.hrc")] == lines


def test_grc(tmp_path):
    recoding = read_grc(file(tmp_path, "a.grc", "1: 1,3-5\n2:2, 6-\n 9 : -0\n"))
    assert [recoding.get_new_code(c) for c in ("1", "2", "3", "4", "5", "6", "12", "0")] == list("12111229")
    tree = read_grc(file(tmp_path, "c.grc", "<TREERECODE>\n142\n1500\n"))
    assert tree == Recoding(collapsed=("142", "1500"))
    for text in ("", "abc\n", "a:\n", "a: 1,,2\n"):
        with pytest.raises(FormatError):
            read_grc(file(tmp_path, "e.grc", text))


def test_hst(tmp_path):
    path = file(tmp_path, "a.hst", '"A";" 1";S\nB;T;pl;3,5;4\nB;T;C;7\nB;T;W;8\nA;T;P\nA;T;u\n')
    decisions = read_hst(path, 2, ";")
    assert decisions[0] == Decision(codes=("A", "1"), action="S", place=f"{path}:1")
    assert (decisions[1].action, decisions[1].numbers) == ("PL", (3.5, 4.0))
    assert [d.action for d in decisions] == ["S", "PL", "W", "W", "P", "U"]
    write_hst(tmp_path / "b.hst", decisions)
    again = read_hst(tmp_path / "b.hst", 2, ",")
    assert [(d.codes, d.action, d.numbers) for d in again] == [(d.codes, d.action, d.numbers) for d in decisions]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A;B\n", ":1: 2 codes and a decision"),
        ("A;B;S\nA;B;X\n", ":2: unknown decision 'X'"),
        ("A;B;PL;1\n", "PL takes 2 numbers"),
        ("A;B;C;-1\n", "below 0"),
        ("A;B;C;x\n", "not a number"),
    ],
)
def test_hst_mistakes(tmp_path, text, message):
    with pytest.raises(FormatError, match=message):
        read_hst(file(tmp_path, "a.hst", text), 2, ";")


# ---------------------------------------------------------------- arb

BATCH = """\
// a comment
<LOGBOOK> "log.txt"
<OPENMICRODATA> "data // not a comment.asc"   // but this is
<OPENMETADATA> "meta.rda"
<SPECIFYTABLE> "Size""Region"|"Var2"|"Var3"|-1,0.5
<SAFETYRULE> NK(3,75)|P(15,2)|P(20,50,1)|FREQ(3,20)|ZERO(10)|WGT(1)|MIS(1)|MAN(20)|REQ(70,60,3,10)|
<SPECIFYTABLE> "Size"|<freq>||
<SAFETYRULE>
<READMICRODATA>
<RECODE> 1, Size, "GK.grc"
<RECODE> 1, "Region", 2
<APRIORI> "a,b.hst", 1, ";"
<SOLVER> FREE
<SUPPRESS> GH(1, 75, 1)
<SUPPRESS> MOD(0)
<SUPPRESS> CTA
<WRITETABLE> (1, 3, AS+FL+QU-, "out.txt")
<WRITETABLE> (1, 6, , "out.jj")
"""


def test_arb(tmp_path):
    commands = arb.read_arb(file(tmp_path, "job.arb", BATCH))
    by_kind = {}
    for command in commands:
        by_kind.setdefault(type(command).__name__, []).append(command)
    assert [c.path for c in by_kind["Open"]] == ["data // not a comment.asc", "meta.rda"]
    first, second = by_kind["SpecifyTable"]
    assert (first.dimensions, first.response, first.shadow, first.cost) == (("Size", "Region"), "Var2", "Var3", "-1")
    assert first.power == 0.5
    assert (second.dimensions, second.response) == (("Size",), "")
    assert by_kind["SafetyRules"][0].rules[2] == ("P", (20.0, 50.0, 1.0))
    assert by_kind["SafetyRules"][1].rules == ()
    assert (by_kind["Recode"][0].path, by_kind["Recode"][1].level) == ("GK.grc", 2)
    assert (by_kind["Apriori"][0].path, by_kind["Apriori"][0].separator) == ("a,b.hst", ";")
    assert [(s.method, s.table, s.arguments) for s in by_kind["Suppress"]] == [
        ("GH", 1, (75.0, 1.0)),
        ("MOD", 0, ()),
        ("CTA", 1, ()),
    ]
    assert by_kind["WriteTable"][0].options == (("AS", True), ("FL", True), ("QU", False))
    assert by_kind["WriteTable"][1].format == 6
    assert commands[0].line == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("<OPENMIKRODATA> x", r"job.arb:2: unknown command <OPENMIKRODATA>.*\n.*OPENMICRODATA"),
        ("OPENMICRODATA x", "job.arb:2: a line starts with a command"),
        ("<OPENMICRODATA>", "job.arb:2: a file name is missing"),
        ("<SPECIFYTABLE> x", "job.arb:2: a table is"),
        ('<SPECIFYTABLE> |"x"', "job.arb:2: a table needs a dimension"),
        ("<SAFETYRULE> Q(3)", "job.arb:2: unknown rule Q"),
        ("<SAFETYRULE> NK(3)", "job.arb:2: rule NK takes 2 numbers"),
        ("<SAFETYRULE> NK 3", "job.arb:2: a rule looks like"),
        ("<SAFETYRULE> NK(a,b)", "job.arb:2: a number of rule NK"),
        ("<READTABLE> 7", "job.arb:2: <READTABLE> takes"),
        ("<SUPPRESS> XYZ(1)", "job.arb:2: unknown method XYZ"),
        ("<SUPPRESS> OPT(one)", "job.arb:2: the table's number"),
        ("<SUPPRESS> OPT(1", "job.arb:2: a method looks like"),
        ("<WRITETABLE> 1,3", "job.arb:2: a table is written with"),
        ('<WRITETABLE> (1,9,,"x")', "job.arb:2: unknown format 9"),
        ('<WRITETABLE> (1,3,ZZ+,"x")', "job.arb:2: unknown option ZZ"),
        ('<WRITETABLE> (1,3,AS,"x")', "job.arb:2: options are pairs"),
        ("<APRIORI> x", "job.arb:2: 3 arguments are needed"),
        ("<RECODE> 0, Size, 2", "job.arb:2: the table's number is below 1"),
    ],
)
def test_arb_mistakes(tmp_path, line, message):
    with pytest.raises(FormatError, match=message):
        arb.read_arb(file(tmp_path, "job.arb", f"// first\n{line}\n"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    text=st.one_of(
        st.binary(max_size=200),
        st.text(alphabet='<>()"|,;:@ \n\tABNKPX019.-/', max_size=200).map(str.encode),
        st.lists(st.sampled_from(BATCH.splitlines() + RDA.splitlines()), max_size=6).map(
            lambda x: "\n".join(x).encode()
        ),
    )
)
def test_no_parser_fails_in_another_way_than_a_clear_error(tmp_path, text):
    path = file(tmp_path, "any.txt", text)
    readers = (
        arb.read_arb,
        read_rda,
        lambda p: read_rda(p, table=True),
        read_argus_cdl_file,
        read_grc,
        lambda p: read_hst(p, 2, ";"),
        lambda p: parse_numbers(read_argus_columns(p, META)["x"], p, META["x"]),
        lambda p: parse_numbers(read_argus_columns(p, COMMA)["x"], p, COMMA["x"]),
    )
    for reader in readers:
        with suppress(CellguardError):
            reader(path)
