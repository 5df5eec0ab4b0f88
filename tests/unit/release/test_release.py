import stat

import numpy as np
import pytest

import cellguard as cg
from cellguard.exceptions import ReleaseError
from cellguard.model.attacker import Attacker
from cellguard.model.table import Table
from cellguard.release.release import Adjustment, Intervals, Perturbation, Rounding, Status, Suppression

VALUES = [20.0, 50.0, 70.0, 30.0, 40.0]


@pytest.fixture
def table():
    return Table.from_equations(VALUES, [[2, 0, 1], [2, 3, 4]], ub=200, sensitive=[0], lower=[4], upper=[4])


@pytest.fixture
def releases(table):
    common = {"table": table, "status": Status.OPTIMAL, "objective": 8.0, "bound": 8.0}
    moved = np.array([24.0, 46.0, 70.0, 30.0, 40.0])
    five = np.full(5, 5.0)
    return {
        "suppress": Suppression(suppressed=np.array([True, True, False, False, False]), **common),
        "adjust": Adjustment(values=moved, **common),
        "intervals": Intervals(
            lower=np.array(VALUES) - [4, 4, 0, 0, 0], upper=np.array(VALUES) + [4, 4, 0, 0, 0], **common
        ),
        "round": Rounding(values=np.array([25.0, 45, 70, 30, 40]), base=five, step=2, **common),
        "perturb": Perturbation(values=np.array([21.0, 49, 70, 30, 40]), distance=five, **common),
    }


def test_what_each_kind_tells_an_attacker(releases):
    expected = {
        "suppress": ([0, 0, 70, 30, 40], [200, 200, 70, 30, 40]),
        "adjust": ([0] * 5, [200] * 5),
        "intervals": ([16, 46, 70, 30, 40], [24, 54, 70, 30, 40]),
        "round": ([16, 36, 61, 21, 31], [34, 54, 79, 39, 49]),  # less than two bases, whole numbers
        "perturb": ([16, 44, 65, 25, 35], [26, 54, 75, 35, 45]),
    }
    for method, release in releases.items():
        assert release.method == method
        lower, upper = release.published_bounds()
        assert (lower.tolist(), upper.tolist()) == expected[method]


def test_an_attacker_adds_what_he_knows(releases):
    insider = Attacker(name="firm", cells=[0], lb=[18.0], ub=[21.0])
    lower, upper = releases["round"].published_bounds(insider)
    assert (lower[0], upper[0]) == (18.0, 21.0)


def test_a_wider_step_is_a_wider_interval(table):
    release = Rounding(
        table=table, status=Status.OPTIMAL, objective=0.0, values=np.array(VALUES), base=np.full(5, 5.0), step=2
    )
    lower, upper = release.published_bounds()
    assert (lower[0], upper[0]) == (11.0, 29.0)


CSV = {
    "suppress": "cell,status,value\n0,withheld,\n1,withheld,\n2,published,70\n3,published,30\n4,published,40\n",
    "adjust": "cell,value\n0,24\n1,46\n2,70\n3,30\n4,40\n",
    "intervals": "cell,lower,upper\n0,16,24\n1,46,54\n2,70,70\n3,30,30\n4,40,40\n",
    "round": "cell,value\n0,25\n1,45\n2,70\n3,30\n4,40\n",
    "perturb": "cell,value\n0,21\n1,49\n2,70\n3,30\n4,40\n",
}


@pytest.mark.parametrize("method", CSV)
def test_saved_as_csv(method, releases, tmp_path):
    path = tmp_path / "release.csv"
    releases[method].save(path)
    assert path.read_text() == CSV[method]
    assert [p.name for p in tmp_path.iterdir()] == ["release.csv"]


@pytest.mark.parametrize("method", CSV)
def test_saved_as_parquet(method, releases, tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "release.parquet"
    releases[method].save(path)
    assert pq.read_table(path).column_names == CSV[method].splitlines()[0].split(",")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frame_of_the_kind_that_came_in(library, releases):
    module = pytest.importorskip(library)
    frame = releases["suppress"].frame(like=module.DataFrame({"a": [1]}))
    assert isinstance(frame, module.DataFrame)
    assert list(frame.columns) == ["cell", "status", "value"]


def test_loss_is_that_of_the_published_cells(releases):
    loss = releases["adjust"].loss()
    assert loss["all"]["abs_mean"] == pytest.approx(8 / 5)
    assert loss["all"]["abs_max"] == 4
    assert loss["sensitive"]["pct_mean"] == pytest.approx(20.0)
    assert loss["nonsensitive"]["pct_max"] == pytest.approx(8.0)
    assert loss["all"]["norm2"] == pytest.approx(np.sqrt(32))
    withheld = releases["suppress"].loss()["sensitive"]
    assert np.isnan(withheld["abs_mean"])  # was 0, as if nothing were lost
    assert withheld["withheld"] == releases["suppress"].primary.sum()
    assert withheld["withheld_value"] > 0


def test_summaries_are_those_of_the_command_line(releases):
    shared = {"method", "status", "objective", "bound", "gap", "table", "seconds", "loss"}
    for release in releases.values():
        assert shared <= set(release.summary(internal=True))
        assert shared - {"objective", "bound", "loss"} == shared & set(release.summary())
    suppression = releases["suppress"].summary(internal=True)
    assert (suppression["primary"], suppression["secondary"], suppression["cost"]) == (1, 1, 50.0)
    assert (releases["round"].summary()["base"], releases["round"].summary()["step"]) == (5.0, 2)
    assert releases["perturb"].summary()["base"] is None


def test_several_bases_are_all_named(table):
    base = np.array([5.0, 5, 10, 5, 5])
    release = Rounding(table=table, status=Status.OPTIMAL, objective=0.0, values=np.array(VALUES), base=base)
    assert release.summary()["base"] == [5.0, 10.0]


@pytest.mark.parametrize(
    ("objective", "bound", "gap"), [(8.0, 8.0, 0.0), (8.0, 6.0, 0.25), (0.0, 0.0, 0.0), (8.0, 8.0 + 1e-12, 0.0)]
)
def test_gap(table, objective, bound, gap):
    release = Adjustment(table=table, status=Status.FEASIBLE, objective=objective, bound=bound, values=np.array(VALUES))
    assert release.gap == gap


def test_no_bound_no_gap(table):
    release = Adjustment(table=table, status=Status.FEASIBLE, objective=1.0, values=np.array(VALUES))
    assert np.isnan(release.gap)


def test_there_may_be_no_release(table, tmp_path):
    release = Suppression(
        table=table,
        status=Status.INFEASIBLE,
        objective=float("nan"),
        suppressed=np.zeros(5, bool),
        explanation="cell 0 cannot be protected.",
    )
    assert not release.published
    for use in (lambda: release.save(tmp_path / "x.csv"), release.frame, release.published_bounds):
        with pytest.raises(ReleaseError, match="cell 0 cannot be protected"):
            use()
    assert list(tmp_path.iterdir()) == []
    summary = release.summary()
    assert "loss" not in summary
    assert "primary" not in summary
    assert summary["explanation"] == "cell 0 cannot be protected."


def test_a_repr_shows_no_value(releases):
    for release in releases.values():
        assert "46" not in repr(release)


def test_withheld_cells_have_one_mark_unless_asked(releases, tmp_path):
    release = releases["suppress"]
    assert set(release.columns()["status"]) == {"withheld", "published"}
    assert set(release.frame()["status"].to_pylist()) == {"withheld", "published"}
    release.save(tmp_path / "marked.csv", mark_primary=True)
    assert [line.split(",")[1] for line in (tmp_path / "marked.csv").read_text().splitlines()[1:3]] == [
        "primary",
        "secondary",
    ]
    again = cg.read_release(release.table, tmp_path / "marked.csv")
    assert again.suppressed.tolist() == release.suppressed.tolist()


def test_the_internal_file_of_an_adjustment_is_its_owners(releases, tmp_path):
    releases["adjust"].save_internal(tmp_path / "inside.csv")
    assert stat.S_IMODE((tmp_path / "inside.csv").stat().st_mode) == 0o600


def test_the_old_name_of_published_facts_still_works():
    from cellguard.release.readers.manifest_facts import PublishedFacts

    release = cg.suppress(cg.examples.salazar2004_figure1())
    with pytest.warns(DeprecationWarning, match="add_facts"):
        assert release.with_told(PublishedFacts()) is release
