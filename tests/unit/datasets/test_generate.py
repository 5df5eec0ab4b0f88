"""Generated tables: the published dimensions, the same table for the same seed, and sizes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cellguard import Table, generate
from cellguard.cli import main
from cellguard.exceptions import InputError, UnknownCodeError

BAENA = {  # instance: n, |S|, m, nnz (baena2018 table 1)
    1: (1444, 135, 171, 2964),
    2: (2544, 237, 303, 5216),
    3: (2108, 196, 243, 4318),
    4: (1444, 216, 152, 2945),
    5: (1488, 220, 173, 3040),
    6: (1411, 209, 168, 2890),
}
SMALL = {
    "hierarchical": {"branching": ((2, 2), (3,))},
    "onehier": {"rows": 9, "columns": 4, "families": 2, "sensitive": 0.1},
    "frequency": {"rows": 3, "columns": 5},
    "geography": {"wards": 40, "authorities": 12, "counties": 5, "regions": 3, "countries": 2, "threshold": 3},
    "census": {"wards": 12, "districts": 3, "ages": 4, "living": 3, "mean": 90.0, "threshold": 3},
    "cube": {"sides": (3, 4, 2), "threshold": 3},
}


@pytest.mark.parametrize("instance", BAENA)
def test_onehier_has_the_dimensions_of_baena2018(instance):
    t = generate.onehier(seed=5, instance=instance)
    assert (t.n_cells, int(t.sensitive.sum()), t.n_relations, t.relations.nnz) == BAENA[instance]
    s = t.sensitive_cells
    assert np.allclose(t.lower[s], 0.05 * t.values[s])
    assert np.allclose(t.upper[s], 0.20 * t.values[s])


def test_geography_has_the_dimensions_of_salazar2004():
    t = generate.geography(seed=1)
    assert (t.n_cells, t.n_relations) == (220_040, 478 * 20 + 11_002 * 6)
    assert 0.15 < (t.values == 0).mean() < 0.35
    assert t.integer
    assert not t.sensitive.any()


def test_census_has_the_dimensions_and_the_counts_of_salazar2004():
    t = generate.census(seed=1)
    assert (t.n_cells, t.n_relations) == (431_613, 33 * 280 + 1209 * 80)
    share = np.bincount(np.minimum(t.values, 21).astype(int)) / t.n_cells
    published = np.array(generate._OCCURRENCES) / 431_613
    assert np.abs(share[:21] - published).sum() < 0.12


def test_frequency_is_as_in_minami2019():
    tables = [generate.frequency(seed, rows=6, columns=6) for seed in range(40)]
    inner = np.concatenate([t.values[~t.fixed] for t in tables])
    assert len(inner) == 36 * 40
    assert abs(np.mean(inner < 5) - 0.121) < 0.03
    t = tables[0]
    assert (t.sensitive == (~t.fixed & (t.values < 5))).all()
    assert set(t.sliding[t.sensitive]) == {8.0}
    assert (t.weights == 1).all()


def test_a_cube_has_all_margins():
    t = generate.cube(seed=2, sides=(50, 4))
    assert (t.n_cells, t.n_relations) == (51 * 5, 51 + 5)


def test_hierarchical_has_any_number_of_dimensions():
    t = generate.hierarchical(seed=3, branching=((2, 3), (2,), (2,), (2,)))
    assert t.n_cells == 9 * 3 * 3 * 3
    assert t.sensitive.any()


@pytest.mark.parametrize("kind", generate.KINDS)
def test_the_same_seed_gives_the_same_table(kind):
    a, b, c = (generate.generate(kind, seed, **SMALL[kind]) for seed in (4, 4, 5))
    assert (a.values == b.values).all()
    assert (a.sensitive == b.sensitive).all()
    assert a.values.shape != c.values.shape or (a.values != c.values).any()
    assert (a.relations != b.relations).nnz == 0


@pytest.mark.parametrize("kind", ["geography", "census", "cube"])
def test_small_counts_are_sensitive_when_asked(kind):
    t = generate.generate(kind, 4, **SMALL[kind])
    s = t.sensitive_cells
    assert len(s)
    assert set(t.values[s]) <= {1.0, 2.0}


@pytest.mark.parametrize(
    ("kind", "sizes", "says"),
    [
        ("hierarchical", {"branching": ()}, "at least one dimension"),
        ("hierarchical", {"branching": ((0,),)}, "at least 1"),
        ("hierarchical", {"sensitive": 2.0}, "between 0 and 1"),
        ("onehier", {"instance": 7}, "1 to 6"),
        ("onehier", {"families": 50}, "families=50"),
        ("onehier", {"sensitive": 1.0}, "share of leaf cells"),
        ("frequency", {"rows": 1}, "rows=1"),
        ("frequency", {"width": -1.0}, "width"),
        ("geography", {"wards": 10}, "'ward' cannot be shared out"),
        ("census", {"mean": 0.0}, "mean=0.0"),
        ("cube", {"sides": ()}, "at least one dimension"),
        ("cube", {"seed": -1}, "seed -1"),
    ],
)
def test_impossible_sizes(kind, sizes, says):
    with pytest.raises(InputError, match=says):
        generate.KINDS[kind](**sizes)


def test_unknown_kinds_and_sizes():
    with pytest.raises(UnknownCodeError, match="did you mean 'census'"):
        generate.generate("censu")
    with pytest.raises(UnknownCodeError, match="did you mean 'wards'"):
        generate.generate("census", ward=3)


@pytest.mark.parametrize("kind", generate.KINDS)
def test_command_line(kind, tmp_path, capsys):
    def text(value):
        if isinstance(value, tuple):
            return ",".join("x".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in value)
        return str(value)

    out = tmp_path / "t.jj.gz"
    words = [w for name, value in SMALL[kind].items() for w in ("--size", f"{name}={text(value)}")]
    assert main(["generate", kind, "--seed", "3", "--out", str(out), "--json", *words]) == 0
    shown = json.loads(capsys.readouterr().out)
    made, read = generate.generate(kind, 3, **SMALL[kind]), Table.read(out)
    assert shown["table"]["cells"] == made.n_cells == read.n_cells
    assert (made.values == read.values).all()
    assert (made.lower == read.lower).all()
    assert (made.relations != read.relations).nnz == 0
    first = out.read_bytes()
    assert main(["generate", kind, "--seed", "3", "--out", str(out), "--quiet", *words]) == 0
    assert out.read_bytes() == first


@pytest.mark.parametrize(
    "words", [["cubes"], ["cube", "--size", "sides"], ["cube", "--size", "sides=a,b"], ["cube", "--size", "side=3"]]
)
def test_command_line_mistakes(words, tmp_path, capsys):
    assert main(["generate", *words, "--out", str(tmp_path / "x.jj")]) == 1
    assert "Hint" in capsys.readouterr().err
