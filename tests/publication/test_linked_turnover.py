"""Four linked tables of turnover as an office has them: sensitive zeros, lone respondents, hierarchies of their own.

The files are those of a public example (see ``shared/publication``); without them the tests are skipped.
"""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

import cellguard as cg

FOLDER = Path(os.environ.get("CELLGUARD_PUBLICATION", Path(__file__).resolve().parents[3] / "shared" / "publication"))
TABLES = {
    "activity by size": ("turnover_act_size.csv", "ACTIVITY", "SIZE", "activity_corr_table.csv"),
    "activity by form": ("turnover_act_cj.csv", "ACTIVITY", "CJ", "activity_corr_table.csv"),
    "region by size": ("turnover_nuts_size.csv", "NUTS", "SIZE", "nuts23_fr_corr_table.csv"),
    "region by form": ("turnover_nuts_cj.csv", "NUTS", "CJ", "nuts23_fr_corr_table.csv"),
}
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the example's files are not here")


def convert_to_rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(newline="") as stream:
        return list(csv.DictReader(stream))


def hierarchy(name: str, codes: set[str]) -> cg.Hierarchy:
    """A correspondence table with a column per level, as far as the table has the codes."""
    pairs = {}
    for row in convert_to_rows(name):
        chain = list(dict.fromkeys(code for code in row.values() if code in codes))
        pairs |= dict(zip(chain, ["Total", *chain], strict=False))
    return cg.Hierarchy.from_pairs(sorted(pairs.items()))


def table(file: str, first: str, second: str, levels: str) -> cg.Table:
    rows = convert_to_rows(file)
    codes = {row[first] for row in rows}
    frame = {name: [row[name] for row in rows] for name in (first, second)}
    frame |= {name: [float(row[name]) for row in rows] for name in ("N_OBS", "TOT", "MAX")}
    dims = {first: hierarchy(levels, codes), second: None}
    made = cg.Table.from_frame(frame, dims, value="TOT", counts="N_OBS", top=["MAX"], name=file)
    return made.apply(cg.Dominance(1, 85), cg.MinFrequency(3, percent=10))


@pytest.fixture(scope="module")
def publication() -> cg.Publication:
    found = cg.Publication.of({name: table(*what) for name, what in TABLES.items()})
    ones = np.ones(found.table.n_cells)
    return found.replace_table(found.table.with_(weights=ones))


def test_the_tables_are_those_that_were_published(publication):
    flagged = [part.table.flags.count_by_rule() for part in publication.parts]
    assert [f["minimum frequency (3)"] for f in flagged] == [52, 35, 55, 45]
    sensitive = [int(part.table.sensitive.sum()) for part in publication.parts]
    assert sensitive == [77, 60, 72, 65]  # frequency, and dominance where it alone flags
    assert publication.table.n_cells == 1617
    assert publication.clusters == (tuple(TABLES),)


def test_sensitive_zeros_are_protected_too(publication):
    zeros = publication.table.sensitive & (publication.table.values == 0)
    assert int(zeros.sum()) == 11
    alone = publication.replace_table(publication.table.with_(insiders=False))
    release = cg.suppress(alone, rounds=3, method="heuristic", time_limit_s=60)
    found = release.audit()
    assert (found.safe, found.checked, found.exact) == (True, 260, 0)
    # published for tau-ARGUS's modular method, one table after the other: 83 + 88 + 82 + 101
    assert sum(int(release.secondary[part.cells].sum()) for part in publication.parts) < 354


def test_respondents_are_held_off_in_all_tables_together(publication):
    release = cg.suppress(publication, rounds=3, method="heuristic", time_limit_s=120)
    assert release.published, release.explanation
    assert sum(attacker.derived for attacker in release.table.attackers) > 20
    found = release.audit()
    assert (found.safe, found.exact) == (True, 0)
