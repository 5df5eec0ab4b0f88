"""The file of an audit has each range once, and tells of every attacker all the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cellguard as cg
from cellguard.exceptions import FormatError
from cellguard.jobs.outputs.audit_file import read_cell_ranges, write_audit_file


@pytest.fixture(scope="module")
def audit():
    """An audit against sixty respondents, each of whom knows what everybody knows and one cell."""
    leaves = [[40.0, 31, 22, 9], [55, 12, 38, 61], [27, 44, 18, 33]]
    table = cg.Table.from_leaves({"region": ["N", "S", "W"], "branch": ["a", "b", "c", "d"]}, leaves)
    table = table.with_(sensitive=np.isin(table.values, [40, 31, 38, 61])).with_levels(0.1, 0.1)
    seven = table.cell({"region": "W", "branch": "b"})
    people = [cg.Attacker(name=f"firm {k}", cells=[seven], lb=[0.0], ub=[90.0 + k]) for k in range(60)]
    return cg.suppress(table.with_(attackers=(cg.Attacker(name="external"), *people)), time_limit_s=5).audit()


def test_every_finding_is_found_again(audit, tmp_path):
    table = audit.release.table
    write_audit_file(tmp_path / "audit.json", table, audit)
    for cell in range(table.n_cells):
        codes = {name: found[0] for name, found in table.cell_codes([cell]).items()}
        expected = [
            (f.attacker.name, f.low[k], f.high[k], f.levels.lower[k], bool(f.safe[k]), bool(f.exact[k]))
            for f in audit.findings
            for k in (f.cells == cell).nonzero()[0]
        ]
        names = ("attacker", "lowest", "highest", "lower_level", "safe", "exact")
        found = [tuple(row[name] for name in names) for row in read_cell_ranges(tmp_path / "audit.json", codes)]
        assert found == expected


def test_a_range_that_attackers_share_is_written_once(audit, tmp_path):
    write_audit_file(tmp_path / "audit.json", audit.release.table, audit)
    written = json.loads((tmp_path / "audit.json").read_text())
    asked = sum(len(f.cells) for f in audit.findings)
    assert len(written["ranges"]["cell"]) < asked / 5
    assert sum(len(person["ranges"]) for person in written["attackers"]) == asked
    assert (written["safe"], written["checked"]) == (audit.safe, audit.checked)
    assert (tmp_path / "audit.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["{}", "[]", "no json", '{"format": "cellguard audit 1"}'])
def test_another_file_is_told(text, tmp_path):
    (tmp_path / "audit.json").write_text(text)
    with pytest.raises(FormatError, match="damaged, or of another version"):
        read_cell_ranges(tmp_path / "audit.json", {"region": "N"})
