"""A small linked history: quarters and years, each protected with all that was released before (bench_ledger.py)."""

import numpy as np
import pytest

import cellguard as cg
from cellguard.jobs.outputs.content import LedgerQuery, load_linked, store_content
from cellguard.jobs.outputs.ledger import add_to_ledger

DIMENSIONS = {
    "region": {f"R{r}": [f"R{r}{d}" for d in range(3)] for r in range(3)},
    "activity": {f"S{s}": [f"S{s}{d}" for d in range(3)] for s in range(3)},
}


def make_table(leaves, flagged, share):
    table = cg.Table.from_leaves(DIMENSIONS, leaves, insiders=False)
    marked = cg.Table.from_leaves(DIMENSIONS, flagged.astype(float))
    codes = table.cell_codes(np.arange(table.n_cells))
    leaf = [len(a) == 3 and len(b) == 3 for a, b in zip(codes["region"], codes["activity"], strict=True)]
    sensitive = np.array(leaf) & (marked.values > 0)
    width = np.where(sensitive, np.ceil(share * table.values), 0.0)
    return table.with_(sensitive=sensitive, lower=width, upper=width)


@pytest.mark.parametrize("prior_percent", [None, 60.0])
def test_two_years_of_quarters_stay_safe_together(tmp_path, prior_percent):
    rng = np.random.default_rng(5)
    level = np.rint(rng.lognormal(8.0, 1.0, (9, 9))) + 40
    flagged = rng.random((9, 9)) < 0.08
    others_unsafe = 0

    def publish(period, table):
        query = LedgerQuery(period=period, additive=True, neighbours=prior_percent is not None)
        linked = load_linked(tmp_path, query)
        history = cg.History(period=period, releases=linked, additive=True, prior_percent=prior_percent)
        other = cg.suppress(table.with_(weights=rng.uniform(1.0, 9.0, table.n_cells)), rounds=1)  # ignores the ledger
        release = cg.suppress(table, earlier=history, rounds=1)
        assert release.published, release.explanation
        found = cg.audit(release, earlier=history)
        assert found.safe
        facts = store_content(tmp_path, cg.EarlierRelease.of(release, name=period, period=period), additive=True)
        add_to_ledger(tmp_path, "released", {"release": period, **facts})
        return len(linked), found.checked, not cg.audit(other, earlier=history).safe

    for year in (2024, 2025):
        total = np.zeros_like(level)
        for quarter in range(1, 5):
            level = np.rint(level * rng.lognormal(0.0, 0.05, level.shape)) + 1
            total = total + level
            linked, _, unsafe = publish(f"{year}Q{quarter}", make_table(level, flagged, 0.1))
            others_unsafe += unsafe
        linked, checked, unsafe = publish(f"{year}", make_table(total, flagged, 0.03))
        others_unsafe += unsafe
        assert linked >= 4
        assert checked >= 5 * int(flagged.sum())
    assert linked == 9
    assert others_unsafe  # patterns that ignore the ledger disclose something
