"""What was published of a publication, from the files of its tables alone."""

import csv

import numpy as np
import pytest

import cellguard as cg
from builders import key
from cellguard.exceptions import InputError, ReleaseError

REGIONS = cg.Hierarchy.from_nested({"East": ["E1", "E2"], "West": ["W1", "W2"]})
LEAVES = np.array([[30.0, 7, 21], [12, 40, 9], [25, 18, 33], [16, 27, 50]])
SIZES = np.array([[20.0, 38], [31, 30], [46, 30], [50, 43]])


@pytest.fixture(scope="module")
def publication() -> cg.Publication:
    sector = cg.Table.from_leaves({"region": REGIONS, "sector": ["a", "b", "c"]}, LEAVES)
    marked = np.isin(
        np.arange(sector.n_cells), [sector.cell({"region": "E1"}), sector.cell({"region": "W1", "sector": "b"})]
    )
    sector = sector.with_(sensitive=marked, lower=3.0 * marked, upper=3.0 * marked)
    size = cg.Table.from_leaves({"region": REGIONS, "size": ["small", "large"]}, SIZES)
    return cg.Publication.of({"by sector": sector, "by size": size})


METHODS = {
    "suppress": (lambda p: cg.suppress(p, time_limit_s=5), {}),
    "intervals": (lambda p: cg.intervals(p, time_limit_s=5), {}),
    "round": (lambda p: cg.round(p, base=10, seed=3), {"base": 10}),
    "adjust": (lambda p: cg.adjust(p, norm="l1", repair="senses", key=key(3)), {"method": "adjust"}),
}


@pytest.mark.parametrize("name", METHODS)
def test_the_files_alone_are_the_release(publication, tmp_path, name):
    method, how = METHODS[name]
    release = method(publication)
    release.save(tmp_path / "out")
    read = cg.read_release(publication, tmp_path / "out", **how)
    assert read.method == release.method
    for one, other in zip(
        read.published_bounds(cg.Attacker(name="a")), release.published_bounds(cg.Attacker(name="a")), strict=True
    ):
        assert np.allclose(one, other, equal_nan=True)
    assert read.audit().safe == release.audit().safe


def change(path, wanted: dict[str, str], **new: str) -> None:
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        if all(row[d] == code for d, code in wanted.items()):
            row.update(new)
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_what_one_table_withholds_and_another_prints_is_printed(publication, tmp_path):
    release = cg.suppress(publication, time_limit_s=5)
    release.save(tmp_path / "out")
    files = {"by sector": tmp_path / "out" / "by sector.csv", "by size": tmp_path / "out" / "by size.csv"}
    change(files["by size"], {"region": "E1", "size": "Total"}, status="published", value="58")
    with pytest.raises(
        ReleaseError, match=r"region=E1.* is sensitive, withheld in 'by sector' and published in 'by size'"
    ):
        cg.read_release(publication, files)
    release.save(tmp_path / "out")
    other = next(
        cell for cell in np.flatnonzero(release.secondary)
        if cell in publication.parts[0].cells and cell in publication.parts[1].cells
    )  # fmt: skip
    region = publication.table.cell_codes([other])["region"][0]
    value = f"{publication.table.values[other]:.0f}"
    change(files["by size"], {"region": region, "size": "Total"}, status="published", value=value)
    read = cg.read_release(publication, files)
    assert not read.suppressed[other]
    assert not read.audit().safe  # each table alone hides it, both together do not


def test_every_table_is_needed(publication, tmp_path):
    cg.suppress(publication, time_limit_s=5).save(tmp_path / "out")
    (tmp_path / "out" / "by size.csv").unlink()
    with pytest.raises(InputError, match="no file of 'by size'"):
        cg.read_release(publication, tmp_path / "out")
    with pytest.raises(InputError, match="the publication has no table 'by sise'"):
        cg.read_release(publication, {"by sise": tmp_path / "out" / "by sector.csv"})


def test_two_numbers_for_one_cell_are_refused(publication, tmp_path):
    release = cg.round(publication, base=10, seed=3)
    release.save(tmp_path / "out")
    change(tmp_path / "out" / "by size.csv", {"region": "Total", "size": "Total"}, value="999990")
    with pytest.raises(ReleaseError, match=r"'by sector' and 'by size' publish different numbers"):
        cg.read_release(publication, tmp_path / "out", base=10)
