"""What would cut the links between ready tables, or count a total twice, is refused or told before work begins."""

from pathlib import Path

import pytest

from cellguard.cli import main
from cellguard.exceptions import CellguardError, PublicationError
from cellguard.jobs import read_job
from cellguard.jobs.definition.read import JobError
from cellguard.jobs.flags import flag_job
from cellguard.jobs.plan import plan
from cellguard.jobs.proposal.tables import propose
from cellguard.jobs.runner import run
from cellguard.jobs.tables import tabulate_job

INNER = "act,size,n,v\na,s,5,10\na,l,5,20\nb,s,6,30\nb,l,7,40\nc,s,1,11\nc,l,1,14\nd,s,9,11\nd,l,8,14\n"
FORMS = "act,form,v\na,x,15\na,y,15\nb,x,30\nb,y,40\nc,x,12\nc,y,13\nd,x,12\nd,y,13\n"
ADDED_UP = """\
act,size,n,v
{0},{0},24,114
{0},s,11,40
{0},l,13,74
a,{0},7,30
a,s,5,10
a,l,2,20
b,{0},17,84
b,s,6,30
b,l,11,54
"""
BY_FORM = """\
act,form,n,v
{0},{0},24,114
{0},x,12,60
{0},y,12,54
a,{0},7,30
a,x,3,15
a,y,4,15
b,{0},17,84
b,x,9,45
b,y,8,39
"""
RULES = '[[rules]]\nrule = "min_frequency"\nn = 3\ntables = ["{}"]\n[method]\nrounds = 1\n[output]\nfolder = "out"\n'


def section(name: str, file: str, dimensions: str, **more: str) -> str:
    """Return a table of a job."""
    names = ", ".join(f'"{d}"' for d in dimensions.split())
    lines = ["[[tables]]", f'name = "{name}"', f'file = "{file}"', f"dimensions = [{names}]", 'value = "v"']
    return "\n".join([*lines, *(f"{key} = {value}" for key, value in more.items())]) + "\n"


def job(folder: Path, dimensions: dict[str, str], *tables: str, rules: str = "A"):
    """Write a job of some dimensions and tables; rules look at one of them."""
    text = 'name = "w"\n' + "".join(f"[dimensions.{d}]\n{more}\n" for d, more in dimensions.items())
    (folder / "job.toml").write_text(text + "".join(tables) + RULES.format(rules))
    return read_job(folder / "job.toml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text(INNER)
    (tmp_path / "b.csv").write_text(FORMS)
    return tmp_path


PLAIN = {"act": "", "size": "", "form": ""}
A = section("A", "a.csv", "act size", count='"n"')


def refused(file) -> CellguardError:
    with pytest.raises(CellguardError) as caught:
        tabulate_job(file)
    return caught.value


# ---------------------------------------------------------------- totals by other names


@pytest.mark.parametrize("total", ["Ensemble", "_T", "TOTAL", "All", "Total"])
@pytest.mark.parametrize("said", ["dimension", "table", "nobody", "another"])
def test_totals_by_other_names_are_not_added_to_themselves(tmp_path, total, said):
    (tmp_path / "a.csv").write_text(ADDED_UP.format(total))
    (tmp_path / "b.csv").write_text(BY_FORM.format(total))
    line = {"dimension": f'total = "{total}"', "another": 'total = "Whole"'}.get(said, "")
    of_table = {"total": f'{{act = "{total}"}}'} if said == "table" else {}
    tables = [section("A", "a.csv", "act size", count='"n"', **of_table), section("B", "b.csv", "act form", **of_table)]
    file = job(tmp_path, dict.fromkeys(PLAIN, line), *tables)
    table = flag_job(tabulate_job(file), file)
    assert (table.n_cells, table.values.max()) == (15, 114)
    assert table.sensitive.sum() == 1


def test_what_init_writes_for_such_totals_publishes_the_truth(tmp_path):
    (tmp_path / "a.csv").write_text(ADDED_UP.format("Ensemble"))
    (tmp_path / "b.csv").write_text(BY_FORM.format("Ensemble"))
    assert main(["init", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--out", str(tmp_path / "i.toml")]) == 0
    made = run(read_job(tmp_path / "i.toml"))
    written = (made.folder / "public" / "act by size.csv").read_text().splitlines()
    assert written[1] == "Ensemble,Ensemble,published,114"
    assert len(written) == 10


def test_totals_with_largest_contributions(tmp_path):
    lines = ADDED_UP.format("Ensemble").splitlines()
    (tmp_path / "a.csv").write_text("\n".join([lines[0] + ",m", *(f"{line},9" for line in lines[1:])]) + "\n")
    file = job(
        tmp_path, {"act": "", "size": 'total = "Ensemble"'}, section("A", "a.csv", "act size", top='["m"]', count='"n"')
    )
    assert flag_job(tabulate_job(file), file).n_cells == 9


def test_a_code_called_like_a_total_that_is_no_sum_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text(ADDED_UP.format("Ensemble").replace("Ensemble,s,11,40", "Ensemble,s,11,39"))
    told = refused(job(tmp_path, {"act": "", "size": ""}, A))
    assert "a.csv: column 'act': code 'Ensemble' is called like a total" in str(told)


def test_a_total_that_the_file_does_not_have_beside_one_that_it_has_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text(ADDED_UP.format("Ensemble"))
    wrong = section("A", "a.csv", "act size", count='"n"', total='{act = "Ensembel"}')
    assert 'say total = {act = "Ensemble"}' in str(refused(job(tmp_path, {"act": "", "size": ""}, wrong)).hint)


# ---------------------------------------------------------------- parts of the population


@pytest.mark.parametrize("key", ["TIME_PEROID", "act_", "country"])
def test_a_key_that_nobody_knows_is_refused(folder, key):
    (folder / "b.csv").write_text("TIME_PERIOD," + FORMS.replace("\n", "\n2024,").removesuffix("2024,"))
    told = refused(job(folder, PLAIN, A, section("B", "b.csv", "act form", where=f'{{{key} = "2024"}}')))
    assert f"b.csv: table 'B': where: '{key}' is neither a dimension nor a column of the file" in str(told)
    assert "TIME_PERIOD" in str(told.hint) or key == "act_"


def test_keys_that_several_tables_use_and_periods_are_known(folder):
    country = '{country = "FR"}'
    tables = (
        section("A", "a.csv", "act size", count='"n"', where=country),
        section("B", "b.csv", "act form", where=country),
    )
    file = job(folder, PLAIN, *tables)
    assert flag_job(tabulate_job(file), file).n_cells == 25
    file = job(folder, PLAIN, A, section("B", "b.csv", "act form", where='{year = "2024"}'))
    assert flag_job(tabulate_job(file), file).n_cells == 25


REGIONS = "region,act,n,v\nEast,a,5,30\nEast,b,5,70\nEast,c,2,25\nWest,a,9,80\nWest,b,9,60\nWest,c,9,90\n"
EAST = "act,size,v\na,s,10\na,l,20\nb,s,30\nb,l,40\nc,s,11\nc,l,14\n"


@pytest.mark.parametrize("tree", ["", 'hierarchy = ["East", "West", "Islands"]'])
def test_a_code_that_its_dimension_does_not_have_is_refused(tmp_path, tree):
    (tmp_path / "ra.csv").write_text(REGIONS)
    (tmp_path / "east.csv").write_text(EAST)

    def made(code: str):
        east = section("the East", "east.csv", "act size", where=f'{{region = "{code}"}}')
        return job(
            tmp_path, {"region": tree, "act": "", "size": ""}, section("A", "ra.csv", "region act", count='"n"'), east
        )

    told = refused(made("Esat"))
    assert "'the East' (east.csv): where: 'Esat' is not a code of the dimension 'region'" in str(told)
    assert "did you mean 'East'" in str(told.hint)
    assert flag_job(tabulate_job(made("East")), made("East")).n_cells == 20
    if tree:
        assert tabulate_job(made("Islands"))


def test_the_column_of_a_part_may_have_another_name(tmp_path):
    (tmp_path / "ra.csv").write_text(REGIONS)
    lines = EAST.splitlines()
    rows = ["REG," + lines[0], *(f"{r},{line}" for r in ("East", "West") for line in lines[1:])]
    (tmp_path / "east.csv").write_text("\n".join(rows) + "\n")
    more = {"where": '{region = "East"}', "columns": '{region = "REG"}'}
    first = section("A", "ra.csv", "region act", count='"n"')
    dims = {"region": "", "act": "", "size": ""}
    file = job(tmp_path, dims, first, section("E", "east.csv", "act size", **more))
    assert flag_job(tabulate_job(file), file).n_cells == 20
    file = job(tmp_path, dims, first, section("E", "east.csv", "act size", where='{REG = "East"}'))
    assert 'where = {region = "East"}' in plan(file)["warnings"][0]
    own = section("E", "east.csv", "region act size", where='{REG = "East"}', columns='{region = "REG"}')
    assert "column 'REG' is the dimension 'region' of this table" in str(refused(job(tmp_path, dims, first, own)))


def test_selections_without_a_row_are_refused(folder):
    (folder / "b.csv").write_text("act,form,v\n")
    told = refused(job(folder, PLAIN, A, section("B", "b.csv", "act form")))
    assert "b.csv: table 'B': the file has no rows." in str(told)
    (folder / "b.csv").write_text("year,act,form,v\n2024,a,x,1\n")
    told = refused(job(folder, PLAIN, A, section("B", "b.csv", "act form", where='{year = "2042"}')))
    assert "b.csv: table 'B': where: no row has '2042' in column 'year'." in str(told)
    assert "2024" in str(told.hint)


# ---------------------------------------------------------------- names


def test_what_looks_alike_and_is_not_linked_is_told_before_anything_is_protected(folder, capsys):
    (folder / "b.csv").write_text(FORMS.replace("act", "activity"))
    dims = {**PLAIN, "activity": ""}
    file = job(folder, dims, A, section("B", "b.csv", "activity form"))
    (told,) = plan(file)["warnings"]
    assert 'columns = {act = "activity"}' in told
    assert main(["protect", str(file.path), "--dry-run"]) == 0
    out = capsys.readouterr()
    assert "warning: dimension 'act'" in out.err
    assert "warning" not in out.out
    assert main(["protect", str(file.path)]) == 1  # one prints what the other withholds
    told = capsys.readouterr().err
    assert "warning: dimension 'act'" in told
    assert "published in one way by one name" in told
    assert not (folder / "out").exists()
    file.path.write_text('different = [["activity", "act"]]\n' + file.path.read_text())
    assert main(["protect", str(file.path)]) == 0
    assert "warning" not in capsys.readouterr().err
    file = job(folder, PLAIN, A, section("B", "b.csv", "act form", columns='{act = "activity"}'))
    assert "warnings" not in plan(file)


def test_init_leaves_indicators_with_equal_margins_to_be_confirmed(folder):
    (folder / "b.csv").write_text(FORMS.replace(",v", ",turnover"))
    found = propose([folder / "a.csv", folder / "b.csv"], folder)
    assert "indicators v and turnover" in found.unconfirmed
    assert "#   indicators 'v' and 'turnover' have the same values" in found.text


@pytest.mark.parametrize(("first", "second"), [("x/y", "x_y"), ("A", "a")])
def test_tables_whose_files_would_be_one_are_refused(folder, first, second):
    with pytest.raises(JobError, match=f"'{second}' would be written to the file of '{first}'"):
        job(
            folder,
            PLAIN,
            section(first, "a.csv", "act size", count='"n"'),
            section(second, "b.csv", "act form"),
            rules=first,
        )


def test_sheets_with_long_names_have_titles_of_their_own(folder):
    from openpyxl import load_workbook

    long = "a very long name of a table about turnover by {}"
    names = [long.format("size"), long.format("form")]
    file = job(
        folder, PLAIN, section(names[0], "a.csv", "act size", count='"n"'), section(names[1], "b.csv", "act form"),
        rules=names[0],
    )  # fmt: skip
    (folder / "job.toml").write_text(file.text.replace('folder = "out"', 'folder = "out"\nformats = ["xlsx"]'))
    made = run(read_job(folder / "job.toml"))
    titles = load_workbook(made.folder / "public" / "w.xlsx").sheetnames
    assert len({title.casefold() for title in titles}) == 2
    assert max(map(len, titles)) == 31


# ---------------------------------------------------------------- one broken table


def test_a_table_that_cannot_be_read_makes_no_further_mistakes(tmp_path):
    (tmp_path / "ra.csv").write_text(REGIONS.replace("West,a,9,80", "West,a,9,many"))
    (tmp_path / "east.csv").write_text("REG,size,v\nTotal_EAST,s,51\nTotal_EAST,l,74\nE1,s,51\nE1,l,70\nE2,l,4\n")
    (tmp_path / "as.csv").write_text("act,size,v\na,s,50\na,l,60\nb,s,70\nb,l,60\nc,s,55\nc,l,60\n")
    east = section(
        "east", "east.csv", "region size", columns='{region = "REG"}', total='{region = "Total_EAST"}',
        hierarchies='{region = ["E1", "E2"]}',
    )  # fmt: skip
    dims = {"region": 'hierarchy = {East = ["E1", "E2"], West = []}', "act": "", "size": ""}
    tables = (section("A", "ra.csv", "region act", count='"n"'), east, section("as", "as.csv", "act size"))
    told = refused(job(tmp_path, dims, *tables))
    assert told.message.startswith("ra.csv: line 5: no number in column 'v'")
    assert not isinstance(told, PublicationError)
