"""Totals by other names: recognised by name and by adding up, refused otherwise, never added to themselves."""

import numpy as np
import pytest

import cellguard as cg
from cellguard.exceptions import InputError
from cellguard.model.totals import find_flat_total


def frame(total: str = "Ensemble", *, factor: float = 1.0) -> dict[str, list]:
    """Return a table of two by two with all margins."""
    rows = [("a", "s", 10.0), ("a", "l", 20.0), ("b", "s", 30.0), ("b", "l", 54.0)]
    rows += [(total, "s", 40.0 * factor), (total, "l", 74.0 * factor)]
    rows += [("a", "Total", 30.0), ("b", "Total", 84.0), (total, "Total", 114.0 * factor)]
    return {"act": [r[0] for r in rows], "size": [r[1] for r in rows], "value": [r[2] for r in rows]}


@pytest.mark.parametrize("total", ["Ensemble", "_T", "TOTAL", "All", "T", "Total_EAST"])
def test_a_total_by_another_name_is_the_total(total):
    table = cg.Table.from_frame(frame(total), ["act", "size"])
    assert table.codes == ((total, "a", "b"), ("Total", "l", "s"))
    assert table.values[0] == 114
    assert table.n_cells == 9


def test_a_code_that_is_called_like_a_total_and_is_none_is_refused_with_a_hint():
    with pytest.raises(InputError, match="'act': code 'All' is called like a total, and is not the sum") as caught:
        cg.Table.from_frame(frame("All", factor=2.0), ["act", "size"])
    assert "hierarchy" in str(caught.value.hint)
    assert "114" not in str(caught.value)


def test_a_category_by_such_a_name_stays_one_where_a_hierarchy_says_so():
    table = cg.Table.from_frame(frame("All", factor=2.0), {"act": ["a", "b", "All"], "size": None})
    assert table.codes[0] == ("Total", "a", "b", "All")
    assert table.values[0] == 3 * 114


def test_a_letter_that_is_no_sum_is_a_category():
    table = cg.Table.from_frame(frame("T", factor=2.0), ["act", "size"])  # section T of an activity, for example
    assert table.codes[0] == ("Total", "T", "a", "b")


def test_a_letter_that_is_nearly_the_sum_is_a_total_with_mistakes():
    rows = {"sex": ["F", "M", "T"], "value": [10.0, 20.0, 31.0]}
    with pytest.raises(InputError, match="code 'T' is called like a total"):
        cg.Table.from_frame(rows, ["sex"])


def test_a_hierarchy_that_adds_a_total_to_its_parts_is_refused():
    tree, told = ["a", "b", "Ensemble"], r"'act': 'Ensemble' is called like a total .* count twice"
    with pytest.raises(InputError, match=told):
        cg.Table.from_frame(frame(), {"act": tree, "size": None})
    with pytest.raises(InputError, match=told):
        cg.Table.from_leaves({"act": tree, "size": ["s", "l"]}, [[10, 20], [30, 54], [40, 74]])


def test_listed_cells_alone_know_their_total_by_its_name():
    rows = {"act": ["Ensemble", "a", "b"], "value": [3.0, 1.0, 2.0]}
    table = cg.Table.from_frame(rows, ["act"], missing="unpublished")
    assert (table.n_cells, table.n_relations) == (3, 1)


def test_linked_tables_with_other_names_of_totals_share_their_margins():
    first = cg.Table.from_frame(frame(), ["act", "size"])
    rows = {"act": ["a", "b", "_T"], "value": [30.0, 84.0, 114.0]}
    both = cg.Publication.of({"one": first, "two": cg.Table.from_frame(rows, ["act"])})
    assert both.table.n_cells == 9


def test_a_declared_total_is_taken_as_it_is():
    rows = np.arange(3)
    assert find_flat_total((["a", "All", "X"], rows), [], np.array([1.0, 5.0, 6.0]), declared="X") == "X"


@pytest.mark.parametrize("said", ["", 'total = "Ensemble"', 'total = "Whole"'])
def test_a_description_beside_a_table_need_not_name_its_totals(tmp_path, said):
    rows = [",".join(map(str, row)) for row in zip(*frame().values(), strict=True)]
    (tmp_path / "cells.csv").write_text("\n".join(["act,size,value", *rows]) + "\n")
    (tmp_path / "cells.toml").write_text(f"[dimensions.act]\n{said}\n[dimensions.size]\n")
    table = cg.Table.read(tmp_path / "cells.csv")
    assert (table.codes[0], table.values.max()) == (("Ensemble", "a", "b"), 114)
