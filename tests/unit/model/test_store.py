"""Tables as CSV, Parquet and frames: exact round trips, descriptions by hand, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from cellguard import Attacker, Hierarchy, Table, examples, generate
from cellguard.exceptions import CellguardError, FormatError, InputError, UnknownCodeError
from cellguard.model.attacker import EXTERNAL

REGION = Hierarchy.from_nested({"North": ["N1", "N2"], "South": ["S1", "S2"]})


def awkward() -> Table:
    """Return a table with everything that could get lost: labels, fractions, signs, bounds, attackers."""
    h = Hierarchy.from_nested({"a,b": ['say "x"', " y"], "ü\n": ["01", "1.0"]}, total="all\\of it")
    h = h.with_labels({"01": "two  blanks\tand a tab"})
    leaves = np.array([[1 / 3, -2.5e-300], [1e15, 0.1], [7, 0], [2**50, 123456789012345.25]])
    firm = Attacker(name='the "firm"', cells=[3, 1], lb=[-1e9, 0.1], ub=[np.inf, 1e17], sensitive=[4], lower=[1e-9])
    return Table.from_leaves(
        {"value": h, "status": ["f", "m"]}, leaves, lb=-np.inf, weights=np.arange(21) / 7, fixed=[20],
        sensitive=[4, 5, 19], lower=[0.1, 0, 0], sliding=[1 / 7, 0, 0], smallest_width=0.25,
        counts=np.arange(21.0) + 1,
        attackers=(EXTERNAL, firm), name="öd\u2028e", integer=False,
    )  # fmt: skip


TABLES = {
    "awkward": awkward,
    "hierarchical": lambda: generate.hierarchical(2, branching=((2, 3), (2, 2), (3,))),
    "census": lambda: generate.census(2, wards=6, districts=2, ages=3, living=2, mean=20, threshold=3),
    "linked": examples.salazar2004_figure5,
    "non-nested": lambda: Table.from_leaves(
        {"region": Hierarchy.join(REGION, Hierarchy.from_nested({"Coast": ["N1", "S1"], "Inland": ["N2", "S2"]}))},
        [1, 2, 3, 4],
    ),
    "equations": lambda: Table.from_equations([3, 4, 7.5], [[2, 0, 1]], rhs=[-0.5], sensitive=[0], upper=1, ub=1e9),
    "codes only": lambda: examples.salazar2004_figure1().with_(hierarchies=()),
    "one cell": lambda: Table.from_equations([1.0], np.zeros((0, 1))),
}


def assert_same(a: Table, b: Table) -> None:
    for field in dataclasses.fields(Table):
        one, two = getattr(a, field.name), getattr(b, field.name)
        if field.name == "library":
            continue  # where it came from, not what it is
        if field.name == "relations":
            assert one.shape == two.shape
            assert (one != two).nnz == 0
        elif field.name == "attackers":
            for x, y in zip(one, two, strict=True):
                for part in dataclasses.fields(Attacker):
                    assert np.array_equal(getattr(x, part.name), getattr(y, part.name)), part.name
        elif isinstance(one, np.ndarray):
            assert np.array_equal(one, two), field.name
        else:
            assert one == two, field.name


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("name", TABLES)
def test_files_come_back_exactly(name, ending, tmp_path):
    table = TABLES[name]()
    path = tmp_path / f"cells.{ending}"
    table.write(path)
    assert_same(table, Table.read(path))
    first = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    table.write(path)
    assert first == {p.name: p.read_bytes() for p in tmp_path.iterdir()}


def test_relations_that_the_dimensions_imply_are_not_written(tmp_path):
    TABLES["linked"]().write(tmp_path / "cells.csv")
    assert {p.name for p in tmp_path.iterdir()} == {"cells.csv", "cells.toml"}


@pytest.mark.parametrize("name", ["equations", "one cell"])
def test_jj_comes_back_exactly(name, tmp_path):
    table = TABLES[name]().with_(name="t")
    for ending in ("jj", "jj.gz"):
        table.write(tmp_path / f"t.{ending}")
        assert_same(table, Table.read(tmp_path / f"t.{ending}"))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("name", ["awkward", "hierarchical", "linked", "non-nested"])
def test_frames_come_back_exactly(name, library):
    module = pytest.importorskip(library)
    table = TABLES[name]()
    like = module.table({"x": [1]}) if library == "pyarrow" else module.DataFrame({"x": [1]})
    frame = table.frame(like)
    assert type(frame) is type(like)
    columns = {  # a column called like a dimension gives way
        "awkward": {
            "value": "value_", "status": "status_", "weights": "weight", "lb": "lb", "lower": "lower",
            "sliding": "sliding", "counts": "count",
        },
        "hierarchical": {"status": "status", "lower": "lower", "upper": "upper"},
    }.get(name, {})  # fmt: skip
    dims = dict(zip(table.dimensions, table.hierarchies, strict=True))
    back = Table.from_frame(
        frame,
        dims,
        missing="unpublished",
        name=table.name,
        integer=table.integer,
        known_zeros=table.known_zeros,
        smallest_width=table.smallest_width,
        attackers=table.attackers,
        **columns,
    )
    assert_same(table, back)


def test_frame_is_pyarrow_unless_asked(tmp_path):
    import pyarrow as pa

    t = examples.salazar2004_figure1()
    frame = t.frame()
    assert isinstance(frame, pa.Table)
    assert frame.column_names == ["activity", "region", "value", "status", "lower", "upper"]


# ---------------------------------------------------------------- descriptions by hand

CELLS = "region,sex,turnover,flag\nN1,f,1.5,s\nN2,m,2,u\nS1,f,4,\nS2,m,8,z\n"


def read(folder, toml, cells=CELLS, **files):
    (folder / "t.csv").write_text(cells)
    (folder / "t.toml").write_text(toml)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return Table.read(folder / "t.csv")


HEAD = 'value = "turnover"\n[columns]\nstatus = "flag"\n[dimensions.sex]\n'


@pytest.mark.parametrize(
    ("toml", "files"),
    [
        ('[dimensions.region]\nfile = "region.hrc"\n', {"region_hrc": "North\n@N1\n@N2\nSouth\n@S1\n@S2\n"}),
        ('[dimensions.region]\nfile = "region.txt"\n', {"region_txt": "North\n  N1\n  N2\nSouth\n  S1\n  S2\n"}),
        ('[dimensions.region]\nfile = "region.csv"\n', {
            "region_csv": "code,parent,label\nNorth,,\nN1,North,upper\nN2,North,\nSouth,,\nS1,South,\nS2,South,\n"}),
        ('[dimensions.region]\noutline = """\nNorth\n  N1\n  N2\nSouth\n  S1\n  S2\n"""\n', {}),
    ],
)  # fmt: skip
def test_hierarchies_from_files_and_outlines(toml, files, tmp_path):
    t = read(tmp_path, HEAD + toml, **files)
    assert t.hierarchies[1].codes == REGION.codes
    assert t.n_cells == 3 * 7
    assert t.values[0] == 15.5
    assert int(t.sensitive.sum()) == 1
    assert int(t.fixed.sum()) == 5  # the one that the file says, and four without a row
    assert t.name == "t"


def test_digits_and_totals_of_other_names(tmp_path):
    toml = '[dimensions.region]\ndigits = [1, 1]\ntotal = "T"\n[dimensions.sex]\ntotal = "both"\n'
    t = read(tmp_path, 'value = "turnover"\n' + toml)
    assert t.codes == (("T", "N", "N1", "N2", "S", "S1", "S2"), ("both", "f", "m"))


def test_crossings_missing_and_repair(tmp_path):
    toml = 'value = "turnover"\nmissing = "error"\ncrossings = [["region"], []]\n[dimensions.region]\n'
    cells = "region;turnover\nN1;1\nN2;2\nTotal;7\n"
    with pytest.raises(CellguardError, match="do not hold"):
        read(tmp_path, toml, cells)
    assert read(tmp_path, 'repair = "leaves"\n' + toml, cells).values.tolist() == [3, 1, 2]
    levels = 'value = "turnover"\ncrossings = [{region = 1}, []]\n[dimensions.region]\noutline = "a\\n  a1\\nb"\n'
    assert read(tmp_path, levels, "region,turnover\na,1\nb,2\n").codes[0] == ("Total", "a", "a1", "b")


@pytest.mark.parametrize(
    ("toml", "error", "says"),
    [
        ("x = = 1", FormatError, "is not TOML.*line 1"),
        ("valu = 'turnover'\n[dimensions.region]", FormatError, "valu: unknown entry.*did you mean 'value'"),
        ("[dimensions.region]\nfiles = 'x'", FormatError, "dimensions.region.files: unknown entry.*'file'"),
        ("[columns]\nstat = 'flag'\n[dimensions.region]", FormatError, "columns.stat: unknown entry"),
        ("integer = 3\n[dimensions.region]", FormatError, "integer: input should be a valid boolean"),
        ("missing = 'maybe'", FormatError, "missing: input should be 'zero'"),
        ("[dimensions.region]\nfile = '../x.hrc'", FormatError, "in the folder of the description"),
        ("[dimensions.region]\nfile = '/etc/passwd'", FormatError, "in the folder of the description"),
        ("[dimensions.region]\nfile = 'x.hrc'", InputError, "no such file"),
        ("relations = 'C:x.csv'", FormatError, "in the folder of the description"),
        ("value = 'turnover'", FormatError, "a file of relations is needed"),
        ("relations = 't.csv'\nvalue = 'turnover'", FormatError, "neither a dimension.*nor a column 'cell'"),
        ("[dimensions.region]\n[dimensions.sex]", UnknownCodeError, "no column 'value'"),
        ("value='turnover'\n[dimensions.region]\n[dimensions.age]", UnknownCodeError, "no column 'age'"),
        ("[dimensions.region]\ncodes = ['a']\nparents = [[-1, 0]]", InputError, "a parent for each of its codes"),
        ("[dimensions.region]\ncodes = ['a', 'b']\nparents = [[1, 0]]", InputError, "exactly one root"),
        ("[dimensions.region]\ndigits = [3]", InputError, "has 2 digits"),
        ("[dimensions.region]\noutline = ''", FormatError, "the outline is empty"),
        ("a = " + "[" * 5000, FormatError, "is nested too deeply|is not TOML"),
    ],
)  # fmt: skip
def test_mistakes_in_a_description(toml, error, says, tmp_path):
    with pytest.raises(error, match=f"(?s){says}"):
        read(tmp_path, toml)


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ("", "empty"),
        ("\0\1\2", "binary"),
        ("region,region\na,b\n", "same name"),
        ("region,sex,turnover\nN1,f\n", ":2: 2 columns; the first line names 3"),
        ("region,sex,turnover\nN1,f,1,2,3\n", ":2: 5 columns; the first line names 3"),
        ('region,sex,turnover\n"N1,f,1\n', ":2: 1 column; the first line names 3"),
        ("region,sex,turnover\nN1,f,secret77\n", "not a number"),
        ("region,sex,turnover\nN1,f,nan\n", "no finite number"),
        ("region,sex,turnover\nN1,f,inf\n", "no finite number"),
        ("region,sex,turnover\nN1,f,\n", "no finite number"),
        ("region,sex,turnover\nN1,f,1\nN1,f,1\n", "listed twice"),
        ("region,sex,turnover\n,f,1\n", "has no code"),
        ("region,sex,turnover\nN1,f,77\nTotal,f,771\n", "do not hold"),
        ("region,sex,turnover,lb\nN1,f,77,78\n", "lower bound lies above"),
        ("region,sex,turnover,lower\nN1,f,77,-78\n", "lower level is not a finite number|level"),
        ("region,sex,turnover,status,lower\nN1,f,77,u,7777\n", "lower level is wider"),
        ("region,sex,turnover,status\nN1,f,77,odd\n", "unknown status"),
    ],
)  # fmt: skip
def test_malformed_cells(cells, says, tmp_path):
    with pytest.raises((InputError, UnknownCodeError), match=says) as raised:
        read(tmp_path, 'value = "turnover"\n[dimensions.region]\n[dimensions.sex]\n', cells)
    assert "77" not in str(raised.value).replace(str(tmp_path), "")


def test_a_description_is_needed(tmp_path):
    (tmp_path / "t.csv").write_text(CELLS)
    with pytest.raises(InputError, match=r"no description t.toml beside it(?s:.*)\[dimensions.region\]"):
        Table.read(tmp_path / "t.csv")
    with pytest.raises(InputError, match="no such file"):
        Table.read(tmp_path / "other.csv")


def test_broken_parquet_and_gzip(tmp_path):
    table = TABLES["hierarchical"]()
    path = tmp_path / "t.parquet"
    table.write(path)
    whole = path.read_bytes()
    for broken in (b"", whole[:-7], whole[: len(whole) // 2], b"PAR1" + b"\0" * 50, whole[::-1]):
        path.write_bytes(broken)
        with pytest.raises(FormatError):
            Table.read(path)
    (tmp_path / "t.csv.gz").write_bytes(b"\x1f\x8b\x08\x00cut")
    with pytest.raises(FormatError, match="not a complete gzip file"):
        Table.read(tmp_path / "t.csv.gz")


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("t.relations.csv", "relation,", "relations,", "no column 'relation'"),
        ("t.relations.csv", "0,2,", "0,9,", "a cell lies outside 0..2"),
        ("t.relations.csv", "0,2,", "7,2,", "a relation lies outside 0..0"),
        ("t.relations.csv", "0,2,", "0,2.5,", "a cell lies outside"),
        ("t.relations.csv", "0,2,-1", "0,2,x", "not a number"),
        ("t.relations.csv", "0,2,-1", "0,2,-2", "do not hold"),
        ("t.toml", "n_relations = 1", "n_relations = 1000000000", "more than the file can hold"),
        ("t.toml", "n_relations = 1", "n_relations = -1", "n_relations: input should be greater"),
        ("t.toml", "[[0, ", "[[5, ", "rhs: relation 5 lies outside"),
        ("t.toml", "[[0, -0.5]]", "[[0]]", "rhs.0.1: field required"),
    ],
)
def test_malformed_relations(file, old, new, says, tmp_path):
    TABLES["equations"]().write(tmp_path / "t.csv")
    text = (tmp_path / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new))
    with pytest.raises(InputError, match=says):
        Table.read(tmp_path / "t.csv")


def test_cells_out_of_order(tmp_path):
    TABLES["equations"]().write(tmp_path / "t.csv")
    text = (tmp_path / "t.csv").read_text().replace("\n1,", "\n5,")
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(FormatError, match="numbered from 0 without gaps"):
        Table.read(tmp_path / "t.csv")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    table = TABLES["hierarchical"]()
    for ending in ("csv", "parquet"):
        path = tmp_path / f"t.{ending}"
        table.write(path)
        before = path.read_bytes()
        monkeypatch.setattr("os.replace", _fail)
        with pytest.raises(OSError, match="disk"):
            table.with_(weights=np.ones(table.n_cells)).write(path)
        monkeypatch.undo()
        assert path.read_bytes() == before
        assert not [p for p in tmp_path.iterdir() if p.name.endswith(".part")]
    with pytest.raises(InputError, match="no such folder"):
        table.write(tmp_path / "nowhere" / "t.csv")


def _fail(*_args):
    raise OSError("disk full")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.jj", "t.jj.gz"])
def test_only_the_owner_may_read_a_written_table(tmp_path, name):
    leaves = {"r": ["a", "b"], "c": ["x", "y"]}
    Table.from_leaves(leaves, [[3, 4], [5, 6]], sensitive=[4], upper=1).write(tmp_path / name)
    Table.from_equations([3, 4, 7], [[2, 0, 1]]).write(tmp_path / f"raw-{name}")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert len(modes) >= 2
    assert set(modes.values()) == {0o600}
