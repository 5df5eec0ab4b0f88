"""A producer's list of tables becomes tables to protect, clusters, a job and a picture."""

import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import cellguard as cg
from cellguard.cli import main
from cellguard.jobs.definition.read import read_job

HEAD = "table_name,field,hrc_field,indicator,hrc_indicator,spanning_1,hrc_spanning_1,spanning_2,hrc_spanning_2\n"
SMALL = HEAD + (
    "T1,firms,,turnover,hrc_turnover,region,,size,\n"
    "T2,firms,,turnover,hrc_turnover,region,,,\n"
    "T3,firms,,exports,hrc_turnover,region,,size,\n"
    "T4,firms,,staff,,region,,form,\n"
    "T5,people,,turnover,hrc_turnover,region,,,\n"
)


def write_list(folder, text=SMALL):
    (folder / "list.csv").write_text(text)
    return folder / "list.csv"


def test_parts_are_merged_and_clusters_formed(tmp_path):
    plan = cg.plan_tables(write_list(tmp_path))
    assert plan.summary() == {
        "listed": 5,
        "tables": 3,
        "clusters": {"firms: TURNOVER": ["T1.T2.T3"], "firms: staff": ["T4"], "people: TURNOVER": ["T5"]},
    }
    (merged,) = plan.clusters["firms: TURNOVER"]
    assert merged.indicators == ("turnover", "exports")
    assert merged.dimensions == {"region": ("region",), "size": ("size",)}


def test_an_equation_makes_indicators_one_cluster(tmp_path):
    plain = SMALL.replace("hrc_turnover", "").replace("hrc_indicator", "hrc_indicator")
    path = write_list(tmp_path, plain)
    assert cg.plan_tables(path).summary()["tables"] == 4
    plan = cg.plan_tables(path, equations=["turnover = exports + staff"])
    assert plan.summary()["clusters"]["firms: turnover"] == ["T1.T2.T3", "T4"]


def test_variables_of_one_hierarchy_are_one_dimension(tmp_path):
    rows = "T1,f,,x,,nuts2,hrc_nuts,size,\nT2,f,,x,,nuts3,hrc_nuts,size,\nT3,f,,x,,nuts3,hrc_nuts,form,\n"
    plan = cg.plan_tables(write_list(tmp_path, HEAD + rows))
    assert plan.summary()["clusters"] == {"x": ["T1.T2", "T3"]}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("T1,f,,x,,a,,b,\nT1,f,,x,,a,,,\n", r"list.csv:3: table 'T1' is listed twice; see line 2"),
        ("T1,f,,x,,a,hrc_a,b,\nT2,f,,x,,a,hrc_b,,\n", r"list.csv:3: spanning variable 'a' has hierarchy 'hrc_b', and"),
        ("T1,f,,,,a,,b,\n", r"list.csv:2: the indicator has no name"),
        ("T1,f,,x,,,,,\n", r"list.csv:2: table 'T1' has no spanning variable"),
        ("T1,f,,x,,a,,,hrc_b\n", r"list.csv:2: hierarchy 'hrc_b' of spanning_2 has no variable"),
        ("T1,f,,x,,a,h,b,h\n", r"list.csv:2: table 'T1' is crossed with 'h' twice"),
    ],
)
def test_wrong_lists_are_refused_with_their_line(tmp_path, rows, message):
    with pytest.raises(cg.InputError, match=message):
        cg.plan_tables(write_list(tmp_path, HEAD + rows))


def test_an_unknown_hierarchy_is_refused_with_its_line(tmp_path):
    folder = tmp_path / "trees"
    folder.mkdir()
    (folder / "hrc_nuts.hrc").write_text("E\n@E1\n@E2\n")
    good = HEAD + "T1,f,,x,,region,hrc_nuts,,\n"
    assert "hrc_nuts" in cg.plan_tables(write_list(tmp_path, good), hierarchies=folder).listed.files
    bad = good + "T2,f,,x,,activity,hrc_naff,,\n"
    with pytest.raises(cg.InputError, match=r"list.csv:3: hierarchy 'hrc_naff' is not known"):
        cg.plan_tables(write_list(tmp_path, bad), hierarchies=folder)
    with pytest.raises(cg.InputError, match="no table has the indicator 'y'"):
        cg.plan_tables(write_list(tmp_path, good), equations=["x = y + z"])


def test_the_job_protects_the_publication(tmp_path, capsys):
    """The written job runs as soon as what is unconfirmed is confirmed."""
    (tmp_path / "hrc_region.hrc").write_text("E\n@E1\n@E2\nW\n@W1\n@W2\n")
    (tmp_path / "hrc_money.hrc").write_text("turnover\n@home\n@abroad\n")
    rows = "A,firms,,turnover,hrc_money,region,hrc_region,size,\nB,firms,,home,hrc_money,region,hrc_region,size,\n"
    rows += "C,firms,,abroad,hrc_money,region,hrc_region,size,\nD,firms,,turnover,hrc_money,region,hrc_region,form,\n"
    path = write_list(tmp_path, HEAD + rows)
    job = tmp_path / "job.toml"
    words = ["plan", str(path), "--out", str(job), "--picture", str(tmp_path / "plan.svg"), "--json", "--quiet"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["clusters"] == {"MONEY": ["A.B.C", "D"]}
    ET.fromstring((tmp_path / "plan.svg").read_text())
    assert 'equations = ["turnover = home + abroad"]' in job.read_text()
    assert main(words) == 1  # it is already there
    capsys.readouterr()
    rng = np.random.default_rng(1)
    lines = ["region,size,form,turnover,home,abroad"]
    for _ in range(300):
        home, abroad = rng.integers(1, 100, 2)
        codes = (
            rng.choice(["E1", "E2", "W1", "W2"]),
            rng.choice(["s", "m", "l"], p=[0.6, 0.3, 0.1]),
            rng.choice(["a", "b"]),
        )
        lines.append(",".join([*codes, str(home + abroad), str(home), str(abroad)]))
    (tmp_path / "records.csv").write_text("\n".join(lines) + "\n")
    assert read_job(job).job.unconfirmed == ["data.file"]
    job.write_text(job.read_text().replace('unconfirmed = ["data.file"]', "unconfirmed = []"))
    assert main(["protect", str(job), "--dry-run", "--quiet"]) == 0
