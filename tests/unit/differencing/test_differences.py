"""Differencing: every disclosive union is found, against enumeration, and every formula computes it."""

import json

import numpy as np
import pytest

import cellguard as cg
from cellguard.cli import main
from cellguard.differencing.pieces import Grouping


def make_people(rng, n=14, groups=(4, 4), near=True):
    """People on a line: zones of two tables that are cut at different places, or at random."""
    place = np.sort(rng.random(n))
    columns = {}
    for k, m in enumerate(groups):
        cuts = np.sort(rng.random(m - 1))
        zone = np.searchsorted(cuts, place) if near and rng.random() < 0.7 else rng.integers(0, m, n)
        columns[f"z{k}"] = [f"{'abc'[k]}{i}" for i in zone]
    return columns


def count_pieces(people):
    rows = list(zip(*people.values(), strict=True))
    distinct = sorted(set(rows))
    return distinct, np.array([rows.count(row) for row in distinct])


def list_unions(pieces, published, total):
    """All sets of pieces whose indicator is a sum of published areas with coefficients."""
    areas = [[row[k] == code for row in pieces] for k, codes in enumerate(published) for code in codes]
    M = np.array([*areas, *([[True] * len(pieces)] if total else [])], float).reshape(-1, len(pieces))
    basis = np.linalg.svd(M)[2][: np.linalg.matrix_rank(M)] if len(M) else np.zeros((0, len(pieces)))
    sets = ((np.arange(1, 2 ** len(pieces))[:, None] >> np.arange(len(pieces))) & 1).astype(float)
    left = sets - (sets @ basis.T) @ basis
    return sets[np.abs(left).max(axis=1) < 1e-9].astype(bool)


def evaluate(difference, pieces, counts):
    """What the formula of a difference gives when the published areas are put in."""
    names = {"z0": 0, "z1": 1, "z2": 2}

    def area(term):
        table, codes = term
        return counts.sum() if table == "all" else counts[[row[names[table]] == codes[0] for row in pieces]].sum()

    return (sum(map(area, difference.plus)) - sum(map(area, difference.minus))) / difference.divisor


@pytest.mark.parametrize("seed", range(60))
def test_every_disclosive_piece_is_found(seed):
    rng = np.random.default_rng([4, seed])
    people = make_people(rng, n=int(rng.integers(6, 22)), groups=(int(rng.integers(2, 5)), int(rng.integers(2, 5))))
    pieces, counts = count_pieces(people)
    minimum, total = int(rng.integers(2, 6)), bool(rng.random() < 0.7)
    published = [sorted({row[k] for row in pieces}) for k in (0, 1)]
    if rng.random() < 0.5:  # some areas are withheld
        published = [[code for code in codes if rng.random() < 0.7] for codes in published]
    tables = {
        f"z{k}": Grouping(name=f"z{k}", columns=(f"z{k}",), published=frozenset((c,) for c in published[k]))
        for k in (0, 1)
    }
    found = cg.find_differences(people, tables, minimum=minimum, total=total)
    listed = [tuple(found.pieces.codes[c][i] for c, i in enumerate(row)) for row in found.pieces.index.tolist()]
    assert sorted(listed) == pieces
    order = np.array([pieces.index(row) for row in listed])
    unions = list_unions(pieces, published, total)
    small = unions[unions @ counts < minimum]
    assert np.array_equal(found.disclosive[np.argsort(order)], small.any(axis=0))
    possible = {tuple(np.flatnonzero(union)) for union in small}
    for difference in found.found:
        assert tuple(sorted(order[difference.pieces])) in possible
        assert evaluate(difference, pieces, counts) == difference.count < minimum


@pytest.mark.parametrize("seed", range(20))
def test_every_dominated_union_is_found(seed):
    rng = np.random.default_rng([5, seed])
    people = make_people(rng, n=10, groups=(3, 3))
    people["turnover"] = np.rint(rng.lognormal(2, 1.5, 10)).tolist()
    found = cg.find_differences(people, ["z0", "z1"], minimum=1, dominance=70, value="turnover")
    rows = list(zip(people["z0"], people["z1"], strict=True))
    pieces = sorted(set(rows))
    unions = list_unions(pieces, [sorted({row[k] for row in pieces}) for k in (0, 1)], total=True)
    values = [[x for x, row in zip(people["turnover"], rows, strict=True) if row == piece] for piece in pieces]
    dominated = [u for u in unions if _is_dominated([x for v, i in zip(values, u, strict=True) if i for x in v])]
    assert bool(found.found) == bool(dominated)
    for difference in found.found:
        mine = [x for i in difference.pieces for x in values[pieces.index(_name(found, i))]]
        assert _is_dominated(mine)


def _is_dominated(contributions):
    return max(contributions) > 0.7 * sum(contributions)


def _name(found, piece):
    return tuple(found.pieces.codes[c][i] for c, i in enumerate(found.pieces.index[piece].tolist()))


def find_in_three(seed):
    """Return what is found in a random population with three tables, beside all unions by enumeration."""
    rng = np.random.default_rng([6, seed])
    groups = tuple(int(m) for m in rng.integers(2, 4, 3))
    people = make_people(rng, n=int(rng.integers(6, 16)), groups=groups, near=bool(rng.random() < 0.3))
    pieces, counts = count_pieces(people)
    minimum, total = int(rng.integers(2, 6)), bool(rng.random() < 0.6)
    published = [sorted({row[k] for row in pieces}) for k in range(3)]
    if rng.random() < 0.5:  # some areas are withheld
        published = [[code for code in codes if rng.random() < 0.8] for codes in published]
    tables = {
        f"z{k}": Grouping(name=f"z{k}", columns=(f"z{k}",), published=frozenset((c,) for c in published[k]))
        for k in range(3)
    }
    found = cg.find_differences(people, tables, minimum=minimum, total=total)
    assert found.complete
    return found, pieces, counts, list_unions(pieces, published, total), minimum


@pytest.mark.parametrize("seed", range(60))
def test_every_disclosive_piece_of_three_tables_is_found(seed):
    found, pieces, counts, unions, minimum = find_in_three(seed)
    order = np.array([pieces.index(_name(found, i)) for i in range(len(found.pieces))])
    small = unions[unions @ counts < minimum]
    assert np.array_equal(found.disclosive[np.argsort(order)], small.any(axis=0))
    possible = {tuple(np.flatnonzero(union)) for union in small}
    for difference in found.found:
        assert tuple(sorted(order[difference.pieces])) in possible
        assert evaluate(difference, pieces, counts) == difference.count < minimum


def test_three_tables_determine_what_no_two_do():
    """The random populations above have unions that need all three tables, of one piece and of several."""
    seen = set()
    for seed in range(60):
        for difference in find_in_three(seed)[0].found:
            used = {table for table, _ in (*difference.plus, *difference.minus)} - {"all"}
            if len(used) == 3:
                seen.add(len(difference.pieces) > 1)
    assert seen == {False, True}


@pytest.mark.parametrize("seed", range(20))
def test_every_dominated_union_of_three_tables_is_found(seed):
    rng = np.random.default_rng([7, seed])
    people = make_people(rng, n=9, groups=(2, 2, 2), near=False)
    people["turnover"] = np.rint(rng.lognormal(2, 1.5, 9)).tolist()
    found = cg.find_differences(people, ["z0", "z1", "z2"], minimum=1, dominance=70, value="turnover")
    rows = list(zip(*(people[f"z{k}"] for k in range(3)), strict=True))
    pieces = sorted(set(rows))
    unions = list_unions(pieces, [sorted({row[k] for row in pieces}) for k in range(3)], total=True)
    values = [[x for x, row in zip(people["turnover"], rows, strict=True) if row == piece] for piece in pieces]
    dominated = [u for u in unions if _is_dominated([x for v, i in zip(values, u, strict=True) if i for x in v])]
    assert bool(found.found) == bool(dominated)
    for difference in found.found:
        assert _is_dominated([x for i in difference.pieces for x in values[pieces.index(_name(found, i))]])


def test_pieces_give_what_records_give(tmp_path):
    people = make_people(np.random.default_rng(7), n=30)
    pieces, counts = count_pieces(people)
    listed = {"z0": [row[0] for row in pieces], "z1": [row[1] for row in pieces], "n": counts}
    one = cg.find_differences(people, ["z0", "z1"], minimum=4)
    other = cg.find_differences(listed, ["z0", "z1"], minimum=4, count="n")
    assert one.summary() == other.summary()
    assert [d.formula for d in one.found] == [d.formula for d in other.found]


def test_published_tables_say_which_areas_are_withheld(tmp_path, capsys):
    people = {"town": ["A"] * 5 + ["B"] * 6, "grid": ["g1"] * 4 + ["g2"] * 7}
    rows = "".join(f"{a},{b}\n" for a, b in zip(*people.values(), strict=True))
    (tmp_path / "people.csv").write_text(f"town,grid\n{rows}")
    (tmp_path / "towns.csv").write_text("town,n\nTotal,11\nA,5\nB,6\n")
    (tmp_path / "squares.csv").write_text("grid,n\nTotal,11\ng1,4\ng2,7\n")
    words = ["diff", str(tmp_path / "towns.csv"), str(tmp_path / "squares.csv"), "--minimum", "3"]
    words += ["--records", str(tmp_path / "people.csv"), "--out", str(tmp_path / "out.csv"), "--quiet"]
    assert main([*words, "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert (told["pieces"], told["differences"], told["disclosed_records"]) == (3, 1, 1)
    assert "towns:A - squares:g1" in (tmp_path / "out.csv").read_text()
    (tmp_path / "towns.csv").write_text("town,n\nA,:\nB,\n")
    assert main(words) == 0


def test_a_job_with_the_pieces_as_a_table_protects_them(tmp_path, capsys):
    """Two tables are unsafe together; with their intersections as a third table `protect` withholds what is needed."""
    place = 0.97 * np.random.default_rng(3).random(600)
    rows = [f"{'ABCDE'[int(5 * x)]},g{int(6 * (x + 0.0253))}" for x in place.tolist()]
    (tmp_path / "people.csv").write_text("\n".join(["town,square", *rows]) + "\n")
    job = tmp_path / "job.toml"

    people = str(tmp_path / "people.csv")
    towns, squares = ([row.split(",")[k] for row in rows] for k in (0, 1))
    assert min(min(codes.count(code) for code in codes) for codes in (towns, squares)) >= 10  # each is safe alone
    assert main(["diff", "--by", "town", "--by", "square", "--records", people, "--json", "--quiet"]) == 2
    assert json.loads(capsys.readouterr().out)["differences"] == 1
    job.write_text(JOB)
    assert main(["protect", str(job), "--quiet"]) == 0
    capsys.readouterr()
    public = [str(tmp_path / "out" / "public" / f"{name}.csv") for name in ("towns", "squares")]
    assert main(["diff", *public, "--records", people, "--json", "--quiet"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["small_pieces"], told["differences"]) == (1, 0)


JOB = """
name = "zones"
[data]
file = "people.csv"
[dimensions.town]
[dimensions.square]
[[tables]]
name = "towns"
dimensions = ["town"]
[[tables]]
name = "squares"
dimensions = ["square"]
[[tables]]
name = "pieces"
dimensions = ["town", "square"]
priority = 0.001
[[rules]]
rule = "min_frequency"
n = 10
[method]
name = "suppress"
[limits]
time_limit_s = 5
[output]
folder = "out"
"""


@pytest.mark.parametrize(
    ("towns", "message"),
    [
        ("town,n\nA,5\nA,6\n", "towns.csv:3: A is listed twice; see line 2"),
        ("city,n\nA,5\n", "towns.csv:1: no column is called like one of the records"),
        ("town,n\n,5\n", "towns.csv:2: an area without a code"),
    ],
)
def test_wrong_tables_are_refused_with_their_line(tmp_path, capsys, towns, message):
    (tmp_path / "people.csv").write_text("town,grid\nA,g1\nB,g2\n")
    (tmp_path / "towns.csv").write_text(towns)
    words = ["diff", str(tmp_path / "towns.csv"), "--by", "grid", "--records", str(tmp_path / "people.csv")]
    assert main(words) == 1
    assert message in capsys.readouterr().err


def test_a_record_without_a_code_is_refused_with_its_line(tmp_path):
    (tmp_path / "people.csv").write_text("town,grid\nA,g1\n,g2\n")
    with pytest.raises(cg.InputError, match=r"people.csv:3: column 'town' has no code"):
        cg.find_differences(tmp_path / "people.csv", ["town", "grid"])
    with pytest.raises(cg.CellguardError, match="no column 'city'"):
        cg.find_differences(tmp_path / "people.csv", ["city", "grid"])
    with pytest.raises(cg.InputError, match="at least two tables"):
        cg.find_differences(tmp_path / "people.csv", ["grid"])


def test_without_time_single_pieces_are_found_and_the_rest_is_said_to_be_open():
    """Single pieces that three tables determine need no time; larger unions are reported as not searched."""
    open_ = 0
    for seed in range(40):
        people = make_people(np.random.default_rng([8, seed]), n=9, groups=(2, 2, 2), near=False)
        pieces, counts = count_pieces(people)
        areas = [sorted({row[k] for row in pieces}) for k in range(3)]
        single = [u for u in list_unions(pieces, areas, total=True) if u.sum() == 1 and counts[u] < 3]
        found = cg.find_differences(people, ["z0", "z1", "z2"], minimum=3, time_limit_s=0)
        assert {pieces[int(np.argmax(u))] for u in single} <= {
            _name(found, i) for i in np.flatnonzero(found.disclosive)
        }
        open_ += not found.complete
    assert open_
