"""The order of the rows of a public file tells nothing about values: a file sorted by size was published in its order."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

import cellguard as cg
from builders import convert_to_rows, write_columns, write_job
from cellguard.cli import main
from cellguard.exceptions import InputError
from cellguard.jobs.outputs.verify import verify_manifest

CODES = [f"{letter}{k}" for letter in "ab" for k in range(1, 7)]
FORMATS = ["csv", "xlsx", "sdmx", "px", "parquet"]


def cells(key: int) -> dict[str, list]:
    """Return a table of two dimensions whose rows are sorted by value; the values come from the key."""
    rng = np.random.default_rng(key)
    inner = rng.permutation(np.arange(len(CODES) * 3) * 7 + 11).reshape(len(CODES), 3).astype(float)
    sizes = ["s", "m", "l"]
    grid = {(c, z): inner[i, j] for i, c in enumerate(CODES) for j, z in enumerate(sizes)}
    grid |= {(c, "Total"): inner[i].sum() for i, c in enumerate(CODES)}
    grid |= {("Total", z): inner[:, j].sum() for j, z in enumerate(sizes)} | {("Total", "Total"): inner.sum()}
    order = sorted(grid, key=lambda codes: -grid[codes])
    values = [grid[codes] for codes in order]
    return {
        "act": [a for a, _ in order], "size": [b for _, b in order], "value": values, "exports": [v / 2 for v in values],
        "n": [2 if v < 60 else 9 for v in values],
    }  # fmt: skip


def write_ready_job(folder, key, **output):
    folder.mkdir()
    write_columns(folder / "cells.csv", cells(key))
    return write_job(
        folder, "act", "size", name="ready", data={}, indicators=[{"name": n, "value": n} for n in ("value", "exports")],
        tables=[{"name": "cells", "file": "cells.csv", "dimensions": ["act", "size"], "count": "n"}],
        rules=[{"rule": "min_frequency", "n": 3, "percent": 10}], method={"name": "suppress", "rounds": 0},
        output={"folder": "out", "formats": FORMATS, **output}, insiders=False,
    )  # fmt: skip


def test_a_job_publishes_rows_in_an_order_that_does_not_depend_on_values(tmp_path):
    shown = []
    for key in (1, 2):
        job = write_ready_job(tmp_path / str(key), key)
        assert main(["protect", str(job), "--quiet"]) == 0
        found = verify_manifest(tmp_path / str(key) / "out" / "internal" / "manifest.json")
        assert found["problems"] == []
        assert found["verdict"] == "hashes, proofs and signature agree"
        public = tmp_path / str(key) / "out" / "public"
        px = "".join(path.read_text().partition("DATA=")[0] for path in sorted(public.glob("*.px")))
        sdmx = [[(r["act"], r["size"]) for r in convert_to_rows(path)] for path in sorted(public.glob("*.sdmx.csv"))]
        shown.append(([(r["act"], r["size"]) for r in convert_to_rows(public / "cells.csv")], sdmx, px))
    assert shown[0] == shown[1]
    assert shown[0][0][:3] == [("Total", "Total"), ("Total", "l"), ("Total", "m")]
    assert len(shown[0][1]) == 2


def test_the_order_of_the_input_is_kept_on_request_with_a_warning(tmp_path, capsys):
    job = write_ready_job(tmp_path / "x", 1, row_order="input")
    assert main(["protect", str(job)]) == 0
    assert "the rows are in the order of the input" in capsys.readouterr().err
    rows, came = convert_to_rows(tmp_path / "x" / "out" / "public" / "cells.csv"), cells(1)
    assert [(r["act"], r["size"]) for r in rows] == list(zip(came["act"], came["size"], strict=True))


@pytest.mark.parametrize("missing", ["error", "unpublished"])
def test_a_release_is_saved_in_the_order_of_the_codes(tmp_path, missing, caplog):
    shown = []
    for key in (1, 2):
        given = {name: column for name, column in cells(key).items() if name in ("act", "size", "value")}
        table = cg.Table.from_frame(given, ["act", "size"], missing=missing)
        table = table.apply(cg.Manual([table.cell({"act": "a1", "size": "s"})], 10))
        release = cg.suppress(table, rounds=0)
        release.save(tmp_path / f"{key}.csv")
        rows = convert_to_rows(tmp_path / f"{key}.csv")
        frame = release.frame(like="pyarrow").to_pylist()
        shown.append([(r["act"], r["size"]) for r in rows])
        assert [(r["act"], r["size"]) for r in frame] == shown[-1]
        values = [table.values[table.cell({"act": r["act"], "size": r["size"]})] for r in rows]
        assert [float(r["value"]) == v if r["value"] else True for r, v in zip(rows, values, strict=True)] == [
            True
        ] * 52
        assert cg.audit(cg.read_release(table, tmp_path / f"{key}.csv")).safe
    assert shown[0] == shown[1]
    with caplog.at_level(logging.WARNING, "cellguard"):
        release.save(tmp_path / "input.csv", row_order="input")
    assert "order of the input" in caplog.text
    if missing == "unpublished":
        assert [(r["act"], r["size"]) for r in convert_to_rows(tmp_path / "input.csv")] == list(
            zip(given["act"], given["size"], strict=True)
        )
    with pytest.raises(InputError, match="row_order"):
        release.save(tmp_path / "x.csv", row_order="size")


def test_a_table_file_with_a_description_is_published_in_the_order_of_the_codes(tmp_path, capsys):
    shown = []
    for key in (1, 2):
        given = {name: column for name, column in cells(key).items() if name in ("act", "size", "value")}
        least = min(v for v in given["value"])
        given["status"] = ["u" if v == least else "s" for v in given["value"]]
        write_columns(tmp_path / f"t{key}.csv", given)
        (tmp_path / f"t{key}.toml").write_text("[dimensions.act]\n[dimensions.size]\n")
        out = tmp_path / f"out{key}.csv"
        assert main(["suppress", str(tmp_path / f"t{key}.csv"), "--out", str(out), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["audit"]["safe"]
        shown.append([(r["act"], r["size"]) for r in convert_to_rows(out)])
    assert shown[0] == shown[1]


def test_linked_tables_are_saved_in_the_order_of_the_codes(tmp_path):
    """Tables that keep only the cells of their rows keep the order of their rows; the files must not."""
    shown = []
    for key in (1, 2):
        given = {name: column for name, column in cells(key).items() if name in ("act", "size", "value")}
        table = cg.Table.from_frame(given, ["act", "size"], missing="unpublished")
        table = table.apply(cg.Manual([table.cell({"act": "a1", "size": "s"})], 10))
        totals = {"act": ["Total", *CODES], "form": ["Total"] * 13}
        totals["value"] = [table.values[table.cell({"act": a, "size": "Total"})] for a in totals["act"]]
        forms = cg.Table.from_frame(totals, ["act", "form"], missing="unpublished")
        release = cg.suppress(cg.Publication.of({"sizes": table, "forms": forms}), rounds=0)
        release.save(tmp_path / str(key))
        shown.append([(r["act"], r["size"]) for r in convert_to_rows(tmp_path / str(key) / "sizes.csv")])
    assert shown[0] == shown[1]
    assert len(shown[0]) == 52
