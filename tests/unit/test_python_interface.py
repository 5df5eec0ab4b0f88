"""The Python interface as people use it: cells by their codes, explanations, comparisons, figures that do not mislead."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest

import cellguard as cg
from cellguard.cli import main
from cellguard.exceptions import InputError
from cellguard.methods.registry import METHODS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def small_table() -> cg.Table:
    table = cg.Table.from_leaves(
        {"region": ["N", "S", "W"], "sex": ["f", "m", "x"]}, [[20, 31, 42], [53, 64, 25], [36, 47, 58]]
    )
    cell = np.arange(table.n_cells) == table.cell({"region": "N", "sex": "f"})
    return table.with_(sensitive=cell, lower=3.0 * cell, upper=3.0 * cell)


def test_join_on_an_instance_is_refused_not_half_forgotten():
    admin = cg.Hierarchy.from_nested({"North": ["N1", "N2"], "South": ["S1", "S2"]})
    coast = cg.Hierarchy.from_nested({"Coast": ["N1", "S1"], "Inland": ["N2", "S2"]})
    with pytest.raises(InputError, match="called on a hierarchy"):
        admin.join(coast)
    assert len(cg.Hierarchy.join(admin, coast).parents) == 2


def test_from_frame_takes_several_hierarchies_as_tabulate_does():
    admin = cg.Hierarchy.from_nested({"North": ["N1", "N2"], "South": ["S1", "S2"]})
    coast = cg.Hierarchy.from_nested({"Coast": ["N1", "S1"], "Inland": ["N2", "S2"]})
    frame = {"region": ["N1", "N2", "S1", "S2"], "value": [3.0, 4.0, 5.0, 6.0]}
    table = cg.Table.from_frame(frame, {"region": (admin, coast)})
    assert table.values[table.cell({"region": "Coast"})] == 8
    assert table.values[table.cell({"region": "North"})] == 7


@pytest.mark.parametrize("named", [[5], ["N,f"], [("N", "f")], ("N", "f"), [{"region": "N", "sex": "f"}], "N,f"])
def test_a_cell_is_named_by_number_or_by_codes(named):
    table = small_table().with_(sensitive=np.zeros(16, bool), lower=np.zeros(16), upper=np.zeros(16))
    table = table.apply(cg.Manual([table.cell({"region": "S", "sex": "m"})]))
    release = cg.suppress(table, must_publish=named, time_limit_s=2)
    assert not release.suppressed[5]
    assert cg.suppress(table, already_suppressed=named, time_limit_s=2).suppressed[5]


def test_codes_that_do_not_fit_are_refused():
    for bad, why in ((["N"], "one code for each"), (["N,q"], "unknown code"), ([99], "outside")):
        with pytest.raises(cg.CellguardError, match=why):
            cg.suppress(small_table(), must_publish=bad)


def test_cells_are_named_by_codes_on_the_command_line_and_in_jobs(tmp_path, capsys):
    from cellguard.jobs.definition.method_sections import METHOD_SECTIONS

    given = METHOD_SECTIONS["suppress"](name="suppress", must_publish=["N,m", ["S", "f"], {"region": "W"}])
    assert given.collect_options()["must_publish"] == ["N,m", ["S", "f"], {"region": "W"}]
    assert "prefer" not in given.collect_options()
    path, out = tmp_path / "t.jj", tmp_path / "out.csv"
    small_table().write(path)  # a file without codes: its cells have numbers
    shared = ["suppress", str(path), "--no-insiders", "--time-limit", "2", "--quiet", "--out", str(out)]
    assert main([*shared, "--must-publish", "6", "--must-publish", "7", "--already-suppressed", "10"]) == 0
    capsys.readouterr()
    lines = out.read_text().splitlines()[1:]
    shown = {line.split(",")[0]: line.split(",")[1] for line in lines}
    assert shown["6"] == shown["7"] == "published"
    assert shown["10"] != "published"


def test_reasons_and_ranges_take_codes_and_secondaries_have_a_range():
    table = small_table()
    release = cg.suppress(table, time_limit_s=2)
    audit = release.audit()
    assert audit.range(("N", "f")) == audit.range(5)
    assert table.reasons({"region": "N", "sex": "f"}) == table.reasons(5)
    for cell in np.flatnonzero(release.secondary).tolist():
        low, high = audit.range(cell)
        assert low <= table.values[cell] <= high
        assert low < high
    with pytest.raises(InputError, match="attacker 'nobody'"):
        audit.range(0, "nobody")


def test_why_names_the_rule_what_is_protected_and_against_whom():
    table = small_table().apply(cg.Manual([5]))
    release = cg.suppress(table, time_limit_s=2)
    primary = release.why(("N", "f"))
    assert primary.status == "sensitive"
    assert primary.reasons == ("manual: marked by hand",) or "by hand" in primary.reasons[0]
    assert primary.levels["external"]["lower"] > 0
    secondary = release.why(int(np.flatnonzero(release.secondary)[0]))
    assert secondary.status == "secondary"
    assert secondary.protects == ("(region=N, sex=f)",)
    assert secondary.against == ("external",)
    assert secondary.range[0] < secondary.range[1]
    published = release.why(0)
    assert published.status == "published"
    assert published.range is None
    assert "to publish it" in str(secondary)


def test_patterns_are_compared_cell_by_cell():
    table = small_table()
    first = cg.suppress(table, time_limit_s=2)
    kept = int(np.flatnonzero(first.secondary)[0])
    second = cg.suppress(table, must_publish=[kept], time_limit_s=2)
    found = cg.compare_patterns(first, second)
    assert kept in found.only_first
    assert 5 in found.both
    assert not first.suppressed[found.only_second].any()
    assert table.label(kept) in found.labels()["only first"]
    with pytest.raises(InputError, match="not of the same table"):
        cg.compare_patterns(first, cg.suppress(cg.Table.from_equations([2, 5, 7], [[2, 0, 1]], sensitive=[0], lower=1)))


def test_preferred_cells_cost_what_is_withheld():
    """The price said a thousandth of what was withheld."""
    table = small_table()
    release = cg.suppress(table, prefer=np.arange(table.n_cells), time_limit_s=2)
    assert release.cost == pytest.approx(table.values[release.secondary].sum())


def test_a_cell_declared_safe_has_no_reason():
    table = small_table().apply(cg.Manual([5]))
    assert table.reasons(5)
    safe = table.with_(sensitive=np.zeros(16, bool), lower=np.zeros(16), upper=np.zeros(16))
    assert safe.reasons(5) == ()


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_insiders_is_an_argument_of_every_method(method):
    records = {
        "r": list("aaabbbcccddd"),
        "s": list("xyxyxyxyxyxy"),
        "v": [90.0, 5, 5, 40, 30, 70, 8, 9, 60, 33, 21, 44],
    }
    table = cg.tabulate(records, ["r", "s"], value="v").apply(cg.PPercent(10))
    options = {"base": 20} if method.has_option("base") else {}
    release = method.verb(table, insiders=False, time_limit_s=5, **options)
    assert release.table.insiders is False
    assert not any(attacker.derived for attacker in release.table.attackers)
    with pytest.raises(InputError, match="contributors of the table are not known"):
        method.verb(small_table(), insiders=True, **options)


def test_reprs_are_short_and_name_the_kind():
    table = small_table().apply(cg.Manual([5]))
    release = cg.suppress(table, time_limit_s=2)
    things = [
        table, release, release.audit(), cg.compare(table, time_limit_s=2), table.flags, cg.Attacker(name="x"),
        cg.CountRule(minimum=3, width=4), cg.PPercent(10), cg.compare_patterns(release, release), cg.Key.draw(),
    ]  # fmt: skip
    for thing in things:
        assert repr(thing).startswith(type(thing).__name__)
        assert len(repr(thing)) < 200


def test_apply_apriori_and_one_name_for_codes_are_public():
    assert callable(cg.apply_apriori)
    assert {"apply_apriori", "compare_patterns"} <= set(cg.__all__)
    table = small_table()
    assert table.cell_codes(5) == {"region": "N", "sex": "f"}
    assert table.cell_codes([5]) == {"region": ["N"], "sex": ["f"]}
    with pytest.warns(DeprecationWarning, match="cell_codes"):
        assert table.codes_of(5) == table.cell_codes(5)


def test_papers_page_names_only_options_that_exist():
    """`papers.md` named an option that did not exist."""
    text = (DOCS / "papers.md").read_text("utf-8")
    checked = 0
    for name, given in re.findall(r"`cg\.(\w+)\(([^`]*)\)`", text):
        verb = getattr(cg, name)
        known = set(inspect.signature(verb).parameters)
        if "options" in known or "knows" in known:
            continue
        for option in re.findall(r"(\w+)=", given):
            assert option in known, f"cg.{name} has no option {option}"
            checked += 1
    assert checked > 5


def test_loss_of_a_suppression_is_json_without_zeros():
    loss = cg.suppress(small_table(), time_limit_s=2).loss()
    assert loss["all"]["withheld"] > 1
    assert not any(figure == 0 for figure in loss["sensitive"].values())
    json.dumps(loss)
