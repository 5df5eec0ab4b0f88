"""Cells without contributors: everybody knows that they are zero, however the table was made."""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from cellguard.argus import read_table_of_batch
from cellguard.release.release import Status, Suppression

# N1 is alone; all that could hide it in its row and column but the empty cells is needed by somebody
ROWS = [("N", "a", 9, 1), ("N", "b", 0, 0), ("N", "c", 40, 7), ("S", "a", 0, 0), ("S", "b", 30, 6), ("S", "c", 50, 8)]
FRAME = {
    "region": [r for r, *_ in ROWS],
    "size": [s for _, s, *_ in ROWS],
    "value": [float(v) for _, _, v, _ in ROWS],
    "n": [n for *_, n in ROWS],
}
DIMS = {"region": None, "size": None}


def known(table):
    zero = table.fixed & (table.lb == 0) & (table.ub == 0)
    return [table.label(i) for i in np.flatnonzero(zero)]


EMPTY = ["(region=N, size=b)", "(region=S, size=a)"]


def from_counts(tmp_path):
    return cg.Table.from_frame(FRAME, DIMS, counts="n")


def from_contributions(tmp_path):
    # the largest contribution of the totals is that of their largest part
    return cg.tabulate(records(), ["region", "size"], "value")


def from_missing_rows(tmp_path):
    keep = [i for i, n in enumerate(FRAME["n"]) if n]
    return cg.Table.from_frame({k: [v[i] for i in keep] for k, v in FRAME.items() if k != "n"}, DIMS)


def from_a_file(tmp_path):
    lines = [f"{r},{s},{v},{n}" for r, s, v, n in ROWS]
    (tmp_path / "cells.csv").write_text("\n".join(["region,size,value,count", *lines]) + "\n")
    (tmp_path / "cells.toml").write_text("[dimensions.region]\n[dimensions.size]\n")
    return cg.Table.read(tmp_path / "cells.csv")


def from_tau_argus(tmp_path):
    table = from_counts(tmp_path)
    codes = table.cell_codes()
    lines = [
        f"{r};{s};{v:g};{n:g}"
        for r, s, v, n in zip(codes["region"], codes["size"], table.values, table.counts, strict=True)
    ]
    (tmp_path / "t.tab").write_text("\n".join(lines) + "\n")
    (tmp_path / "t.rda").write_text(
        '<SEPARATOR> ";"\nregion\n <RECODEABLE>\n <TOTCODE> "Total"\nsize\n <RECODEABLE>\n <TOTCODE> "Total"\n'
        "value\n <NUMERIC>\nfreq\n <FREQUENCY>\n"
    )
    (tmp_path / "t.arb").write_text(
        '<OPENTABLEDATA> "t.tab"\n<OPENMETADATA> "t.rda"\n'
        '<SPECIFYTABLE> "region""size"|"value"||\n<SAFETYRULE> FREQ(3,10)\n<READTABLE> 1\n'
    )
    return read_table_of_batch(tmp_path / "t.arb")


def records():
    out = {"region": [], "size": [], "value": []}
    for region, size, value, n in ROWS:
        for _ in range(n):
            out["region"].append(region)
            out["size"].append(size)
            out["value"].append(value / n)
    return out


MADE = [from_counts, from_contributions, from_missing_rows, from_a_file, from_tau_argus]


@pytest.mark.parametrize("make", MADE)
def test_cells_without_contributors_are_known_to_be_empty(make, tmp_path):
    assert known(make(tmp_path)) == EMPTY


@pytest.mark.parametrize("make", MADE)
def test_empty_cells_hide_nothing(make, tmp_path):
    """A pattern whose partners are empty is broken by who looks around; our own does not use them."""
    table = make(tmp_path)
    if not table.sensitive.any():
        table = table.apply(cg.Manual([table.cell({"region": "N", "size": "a"})], 20))
    table = table.with_(insiders=False)
    suppressed = table.sensitive.copy()
    for region, size in (("N", "b"), ("S", "a"), ("S", "b")):
        suppressed[table.cell({"region": region, "size": size})] = True
    pattern = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=suppressed)
    assert not pattern.audit().safe
    assert pattern.audit().exact >= 1
    release = cg.suppress(table)
    assert release.audit().safe
    assert not (release.suppressed & table.fixed).any()


def test_unless_told_otherwise(tmp_path):
    assert known(cg.Table.from_frame(FRAME, DIMS, counts="n", known_zeros=False)) == []
    assert known(cg.tabulate(records(), ["region", "size"], "value", known_zeros=False)) == []
    from_a_file(tmp_path)
    (tmp_path / "cells.toml").write_text("known_zeros = false\n[dimensions.region]\n[dimensions.size]\n")
    table = cg.Table.read(tmp_path / "cells.csv")
    assert known(table) == []
    table.write(tmp_path / "again.csv")
    assert known(cg.Table.read(tmp_path / "again.csv")) == []


def test_a_zero_that_somebody_contributed_is_not_known():
    frame = FRAME | {"n": [1, 2, 7, 0, 6, 8]}
    assert known(cg.Table.from_frame(frame, DIMS, counts="n")) == ["(region=S, size=a)"]
    assert known(cg.Table.from_frame(frame, DIMS)) == []  # a row with a zero may be somebody's


def test_a_sensitive_empty_cell_stays_as_the_office_says():
    frame = FRAME | {"status": ["s", "u", "s", "s", "s", "s"], "up": [0, 5, 0, 0, 0, 0]}
    table = cg.Table.from_frame(frame, DIMS, counts="n", status="status", upper="up")
    assert known(table) == ["(region=S, size=a)"]


def test_of_a_table_of_counts_zeros_are_empty():
    frame = {"region": FRAME["region"], "size": FRAME["size"], "value": FRAME["n"]}
    assert known(cg.Table.from_frame(frame, DIMS, integer=True)) == EMPTY


def test_where_values_may_be_negative_an_empty_cell_is_zero_all_the_same():
    table = cg.Table.from_frame(FRAME, DIMS, counts="n", lb=-np.inf)
    assert known(table) == EMPTY


def test_totals_of_empty_cells_are_empty():
    frame = {"region": ["N", "S"], "size": ["a", "a"], "value": [3.0, 4.0]}
    table = cg.Table.from_frame(frame, {"region": None, "size": {"big": ["b", "c"], "small": ["a"]}})
    assert "(region=Total, size=big)" in known(table)
    assert len(known(table)) == 9


def test_a_job_may_say_otherwise(tmp_path):
    from cellguard.jobs import read_job
    from cellguard.jobs.tables import tabulate_job

    lines = [",".join(map(str, row)) for row in zip(*records().values(), strict=True)]
    (tmp_path / "firms.csv").write_text("\n".join(["region,size,value", *lines]) + "\n")
    text = '[data]\nfile = "firms.csv"\nvalue = "value"\n{}[dimensions.region]\n[dimensions.size]\n'
    text += '[[rules]]\nrule = "min_frequency"\nn = 3\n'
    for line, expected in (("", EMPTY), ("known_zeros = false\n", [])):
        (tmp_path / "job.toml").write_text(text.format(line))
        assert known(tabulate_job(read_job(tmp_path / "job.toml"))) == expected


def test_what_is_known_stays_known_when_bounds_are_given(tmp_path):
    from cellguard.cli.support.options import set_bounds

    assert known(set_bounds(from_counts(tmp_path), "1,inf")) == EMPTY
