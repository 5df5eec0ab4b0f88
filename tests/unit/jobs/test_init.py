import json
import tomllib

import pytest

from cellguard.cli import main
from cellguard.jobs import read_job


def test_from_a_data_file_to_a_report(office, capsys):
    """What a new user does: init, look at the plan, protect, open the report."""
    (office / "job.toml").unlink()
    assert main(["init", str(office / "firms.csv")]) == 0
    assert main(["protect", str(office / "job.toml"), "--dry-run"]) == 0
    assert main(["protect", str(office / "job.toml"), "--quiet"]) == 0
    job = read_job(office / "job.toml")
    assert job.job.data.value == "turnover"
    assert list(job.job.dimensions) == ["region", "sector"]
    assert job.job.dimensions["region"].hierarchy == "region.txt"
    assert (job.folder / "public" / "report.html").is_file()


def test_an_existing_job_is_kept(office, capsys):
    before = (office / "job.toml").read_text()
    assert main(["init", str(office / "firms.csv")]) == 1
    assert "already exists" in capsys.readouterr().err
    assert (office / "job.toml").read_text() == before
    assert main(["init", str(office / "firms.csv"), "--force"]) == 0


def test_counts_when_there_is_no_amount(tmp_path):
    (tmp_path / "people.csv").write_text("sex,age\n" + "f,old\nm,young\nf,young\nm,old\n" * 10)
    assert main(["init", str(tmp_path / "people.csv")]) == 0
    job = tomllib.loads((tmp_path / "job.toml").read_text())
    assert "value" not in job["data"]
    assert job["rules"] == [{"rule": "min_frequency", "n": 3}]


def test_strange_names_are_quoted(tmp_path):
    (tmp_path / "d ä.csv").write_text('"a ""b"" [c]",amount\n' + "".join(f"x{i % 3},{i}.5\n" for i in range(60)))
    assert main(["init", str(tmp_path / "d ä.csv")]) == 0
    assert list(tomllib.loads((tmp_path / "job.toml").read_text())["dimensions"]) == ['a "b" [c]']


@pytest.mark.parametrize("text", ["", "only,a,head\n", "id,amount\n1,2.5\n2,3.5\n"])
def test_data_without_anything_to_tabulate(tmp_path, text, capsys):
    (tmp_path / "data.csv").write_text(text)
    assert main(["init", str(tmp_path / "data.csv")]) == 1
    assert main(["init"]) == 1


def test_semicolons_decimal_commas_and_latin_letters(tmp_path, capsys):
    lines = [f"{i};{'Süd' if i % 3 else 'Nord'};{'47' if i % 2 else '10'};{i * 7 % 90},5;G{i // 2}" for i in range(200)]
    (tmp_path / "betriebe.csv").write_bytes("\n".join(["Nr;Region;NACE;Umsatz;Gruppe", *lines]).encode("latin-1"))
    assert main(["init", str(tmp_path / "betriebe.csv")]) == 0
    job = tomllib.loads((tmp_path / "job.toml").read_text())
    assert job["data"] == {"file": "betriebe.csv", "value": "Umsatz", "holding": "Gruppe", "decimal": ","}
    assert list(job["dimensions"]) == ["Region", "NACE"]
    assert main(["protect", str(tmp_path / "job.toml"), "--dry-run"]) == 0


def test_gaps_are_seen_and_dealt_with(tmp_path, capsys):
    rows = [
        f'"{"Nord" if i % 3 else "Süd"}";{"" if i == 7 else "1-9" if i % 2 else "250+"};'
        f"{'' if i == 5 else str(i * 7 % 90) + ',5'};{'G' if i % 9 == 0 else ''};{10 + i % 5}"
        for i in range(120)
    ]
    text = "\r\n".join(["Bundesland;Größe;Umsatz (Tsd. €);Konzern;WZ", *rows]) + "\r\n"
    (tmp_path / "betriebe 2025.csv").write_bytes(text.encode("utf-8-sig"))
    assert main(["init", str(tmp_path / "betriebe 2025.csv")]) == 0
    written = (tmp_path / "job.toml").read_text()
    job = tomllib.loads(written)
    assert job["data"]["skip_missing"] is True
    assert job["data"]["standalone"] is True
    assert job["dimensions"]["Größe"] == {"missing": ["unknown"]}
    assert "# digits = [1, 1]" in written
    assert main(["protect", str(tmp_path / "job.toml"), "--dry-run"]) == 0


# ---------------------------------------------------------------- the careless are protected


def started(tmp_path, columns, n=400, **options):
    """Write records, start a job for them, and return it."""
    lines = [",".join(str(make(i)) for make in columns.values()) for i in range(n)]
    (tmp_path / "data.csv").write_text("\n".join([",".join(columns), *lines]) + "\n")
    code = main(["init", str(tmp_path / "data.csv"), "--force"])
    path = tmp_path / "job.toml"
    return code, tomllib.loads(path.read_text()) if code == 0 else {}


REGION = {"region": lambda i: "NSEW"[i * 7 % 4]}
AMOUNT = {"turnover": lambda i: i * 37 % 391 + 0.5}


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("name", lambda i: f"Utility {i % 15}"),  # fifteen utilities, many records each
        ("firm", lambda i: f"F{i % 133}"),
        ("company_id", lambda i: 1000 + i // 2),
        ("ent", lambda i: f"E{i % 100}"),
        ("SIREN", lambda i: 552_000_000 + i // 3),
        ("EnterpriseName", lambda i: f"Messrs {i // 4}"),
        ("respondent", lambda i: i % 50),
        ("holding", lambda i: f"H{i % 40}"),
    ],
)
def test_who_answered_is_the_holding_and_never_published(tmp_path, name, entry, capsys):
    code, job = started(tmp_path, {name: entry} | REGION | AMOUNT)
    assert code == 0
    assert job["data"]["holding"] == name
    assert job["data"]["value"] == "turnover"
    assert list(job["dimensions"]) == ["region"]
    assert f"{name}: holding: its name suggests" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("respondent", lambda i: f"R{i}"),
        ("who", lambda i: f"{i * 7919 % 10007} Ltd"),  # nothing in its name, nearly one for each record
        ("id", lambda i: i + 1),
        ("serial", lambda i: 100_000 + i * 13),
    ],
)
def test_a_column_with_one_entry_per_record_is_left_alone(tmp_path, name, entry, capsys):
    code, job = started(tmp_path, {name: entry} | REGION | AMOUNT)
    assert code == 0
    assert name not in job["dimensions"]
    assert job["data"]["value"] == "turnover"
    assert f"{name}: not used" in capsys.readouterr().err


def test_where_only_respondents_are_left_there_is_no_job(tmp_path, capsys):
    code, _ = started(tmp_path, {"name": lambda i: f"Utility {i % 15}"} | AMOUNT, n=60)
    assert code == 1
    shown = capsys.readouterr().err
    assert "no column looks like a dimension" in shown
    assert "name: holding: its name suggests that it identifies respondents" in shown
    assert not (tmp_path / "job.toml").exists()


@pytest.mark.parametrize("name", ["age_group", "product_group", "id_sector", "region_name", "group"])
def test_harmless_groups_are_dimensions(tmp_path, name):
    _, job = started(tmp_path, {name: lambda i: f"g{i % 7}"} | AMOUNT)
    assert list(job["dimensions"]) == [name]
    assert "holding" not in job["data"]


def test_a_value_that_only_its_shape_tells_must_be_confirmed(tmp_path, capsys):
    code, job = started(tmp_path, REGION | {"x17": lambda i: i * 37 % 391 + 0.5})
    assert code == 0
    assert job["unconfirmed"] == ["value"]
    path = str(tmp_path / "job.toml")
    assert "to be confirmed in the file: value" in capsys.readouterr().err
    assert main(["protect", path, "--dry-run"]) == 0
    assert "to be confirmed" in capsys.readouterr().out
    assert main(["protect", path]) == 1
    assert "guesses that have not been confirmed: value" in capsys.readouterr().err
    assert not list(tmp_path.rglob("public"))
    lines = (tmp_path / "job.toml").read_text().splitlines()
    (tmp_path / "job.toml").write_text("\n".join(line for line in lines if not line.startswith("unconfirmed")))
    assert main(["protect", path, "--quiet"]) in (0, 2)


def test_years_and_dates_are_no_amounts(tmp_path):
    _, job = started(tmp_path, REGION | {"year": lambda i: 1950 + i % 70})
    assert "value" not in job["data"]


NESTED = {
    "A10": lambda i: "XY"[i % 12 // 6],
    "A21": lambda i: "ABCD"[i % 12 // 3],
    "A88": lambda i: f"{i % 12 + 1:02d}",
}


def test_nested_columns_become_one_hierarchy(tmp_path, capsys):
    code, job = started(tmp_path, NESTED | REGION | AMOUNT)
    assert code == 0
    assert job["dimensions"]["A88"] == {"levels": ["A10", "A21", "A88"]}
    assert "A10" not in job["dimensions"]
    assert "A21" not in job["dimensions"]
    assert "A88: dimension: 12 codes, each of 33 records on average; A10 > A21 > A88 nest" in capsys.readouterr().err
    assert main(["protect", str(tmp_path / "job.toml"), "--dry-run", "--json"]) == 0
    assert '"A88": 19' in capsys.readouterr().out


def test_labels_of_codes_are_no_second_dimension(tmp_path, capsys):
    _, job = started(tmp_path, REGION | {"region_label": lambda i: "Region " + "NSEW"[i * 7 % 4]} | AMOUNT)
    assert len(job["dimensions"]) == 1
    assert "under other names" in capsys.readouterr().err


def test_a_table_that_is_added_up_is_recognised(tmp_path, capsys):
    """Total codes, counts and largest contributions under any name; the job runs as it is."""
    lines = ["region,size,NbObs,TotTurnover,Max1,Max2"]
    cells = {
        ("N", "a"): (2, 90.0, 60.0, 30.0), ("N", "b"): (9, 400.0, 80.0, 70.0), ("S", "a"): (8, 300.0, 60.0, 50.0),
        ("S", "b"): (7, 350.0, 70.0, 65.0), ("W", "a"): (6, 200.0, 50.0, 40.0), ("W", "b"): (9, 500.0, 90.0, 80.0),
    }  # fmt: skip
    for region in ("ENSEMBLE", "N", "S", "W"):
        for size in ("Total", "a", "b"):
            parts = [c for k, c in cells.items() if region in ("ENSEMBLE", k[0]) and size in ("Total", k[1])]
            tops = sorted((x for c in parts for x in c[2:]), reverse=True)
            lines.append(f"{region},{size},{sum(c[0] for c in parts)},{sum(c[1] for c in parts)},{tops[0]},{tops[1]}")
    (tmp_path / "cells.csv").write_text("\n".join(lines) + "\n")
    assert main(["init", str(tmp_path / "cells.csv")]) == 0
    told = capsys.readouterr().err
    assert "total 'ENSEMBLE'" in told
    job = tomllib.loads((tmp_path / "job.toml").read_text())
    (table,) = job["tables"]
    assert table["value"] == "TotTurnover"
    assert table["count"] == "NbObs"
    assert table["top"] == ["Max1", "Max2"]
    assert table["total"] == {"region": "ENSEMBLE", "size": "Total"}
    assert [rule["rule"] for rule in job["rules"]] == ["p_percent", "min_frequency"]
    assert "unconfirmed" not in job
    assert main(["protect", str(tmp_path / "job.toml"), "--quiet"]) == 0
    assert (tmp_path / "cells-release" / "public" / "report.html").is_file()


def test_the_hierarchy_beside_a_ready_table_is_found_and_gaps_are_told(tmp_path, capsys):
    (tmp_path / "nace.csv").write_text("A10,A88\nAZ,01\nAZ,02\nBE,05\nBE,07\n")
    codes = ["Total", "AZ", "01", "02", "BE", "05", "07"]
    values = {"01": 8, "02": 9, "05": 2, "07": 7, "AZ": 17, "BE": 9, "Total": 26}
    rows = [f"{code},{sex},{values[code]}" for code in codes for sex in ("Total", "f")]
    (tmp_path / "cells.csv").write_text("\n".join(["act,sex,n", *rows[:-1]]) + "\n")
    assert main(["init", str(tmp_path / "cells.csv")]) == 0
    told = capsys.readouterr().err
    assert "nace.csv has the hierarchy" in told
    assert "1 of 14 combinations" in told
    job = tomllib.loads((tmp_path / "job.toml").read_text())
    assert job["dimensions"]["act"]["hierarchy"] == "nace.csv"
    assert job["tables"][0]["value"] == "n"


def test_days_come_last_and_leading_zeros_are_codes(tmp_path, capsys):
    columns = {"day": lambda i: f"{i % 27 + 1:02d}.03.2024", "nace": lambda i: f"{i * 7 % 5:02d}"} | REGION
    code, job = started(tmp_path, columns | {"firmnr": lambda i: 10_000 + min(i, 390) * 31} | AMOUNT)
    assert code == 0
    assert set(job["dimensions"]) == {"nace", "region"}
    told = capsys.readouterr().err
    assert "days are rarely a dimension (switched off)" in told
    assert "firmnr: holding" in told


def test_entries_that_are_no_numbers_are_told_with_their_line(tmp_path, capsys):
    _, job = started(tmp_path, REGION | {"turnover": lambda i: "n/a" if i == 7 else f"{i}.5"})
    assert job["data"]["value"] == "turnover"
    assert "1 entry is not a number, in line 9 first" in capsys.readouterr().err
    assert main(["protect", str(tmp_path / "job.toml"), "--dry-run"]) == 1
    assert "not a finite number" in capsys.readouterr().err


def test_records_that_stand_twice_are_told(tmp_path, capsys):
    columns = {"nr": lambda i: f"{i % 399:05d}", "region": lambda i: "NSEW"[i % 399 % 4]}
    started(tmp_path, columns | {"turnover": lambda i: f"{i % 399}.25"})
    assert "1 record is the same as another one in every column" in capsys.readouterr().err


CELLS = "region,sex,{v}\nN,f,10\nN,m,4\nS,f,2\nS,m,7\n"
TOTALS = "Total,f,12\nTotal,m,11\nN,Total,14\nS,Total,9\nTotal,Total,23\n"


@pytest.mark.parametrize("rows", [CELLS + TOTALS, CELLS, CELLS + "N,Total,14\nS,Total,9\n"])
def test_a_table_of_counts_with_all_some_or_no_totals(tmp_path, rows, capsys):
    (tmp_path / "cells.csv").write_text(rows.format(v="freq"))
    assert main(["init", str(tmp_path / "cells.csv")]) == 0
    job = tomllib.loads((tmp_path / "job.toml").read_text())
    assert job["tables"][0]["value"] == job["tables"][0]["count"] == "freq"
    assert "unconfirmed" not in job
    capsys.readouterr()
    assert main(["protect", str(tmp_path / "job.toml"), "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["cells"], plan["sensitive"]) == (9, 1)


def test_the_release_of_a_ready_table_is_called_like_its_file(tmp_path, capsys):
    (tmp_path / "crimes-2024.csv").write_text((CELLS + TOTALS).format(v="freq"))
    assert main(["init", str(tmp_path / "crimes-2024.csv")]) == 0
    assert main(["protect", str(tmp_path / "job.toml")]) == 0
    public = tmp_path / "crimes-2024-release" / "public"
    assert {f.name for f in public.iterdir()} >= {"crimes-2024.csv", "crimes-2024.xlsx"}
    capsys.readouterr()


def test_whole_numbers_without_contributors_are_counts_only_if_somebody_says_so(tmp_path, capsys):
    (tmp_path / "cells.csv").write_text((CELLS + TOTALS).format(v="value"))
    assert main(["init", str(tmp_path / "cells.csv")]) == 0
    assert "to be confirmed in the file: count" in capsys.readouterr().err
    assert main(["protect", str(tmp_path / "job.toml")]) == 1


def test_amounts_without_contributors_wait_for_cells_by_hand(tmp_path, capsys):
    text = (CELLS + TOTALS).format(v="turnover").replace(",", ";").replace(";10\n", ";10,5\n")
    text = text.replace("Total;f;12", "Total;f;12,5").replace("N;Total;14", "N;Total;14,5")
    (tmp_path / "cells.csv").write_text(text.replace("Total;Total;23", "Total;Total;23,5"))
    assert main(["init", str(tmp_path / "cells.csv")]) == 0
    assert main(["protect", str(tmp_path / "job.toml"), "--dry-run"]) == 0
    assert "no cell is sensitive by the rules" in " ".join(capsys.readouterr().out.split())
    assert main(["protect", str(tmp_path / "job.toml")]) == 2


def test_what_is_wrong_with_a_table_is_told_with_its_place(tmp_path, capsys):
    def told(old, new):
        path = tmp_path / "cells.csv"
        path.write_text((CELLS + TOTALS).format(v="freq").replace(old, new))
        code = main(["init", str(path), "--force"]) or main(["protect", str(tmp_path / "job.toml"), "--dry-run"])
        assert code == 1
        return capsys.readouterr().err

    assert "tolerance = 0.001" in told("N,Total,14", "N,Total,15")
    assert "line 4: no number in column 'freq'" in told("S,f,2", "S,f,")
    assert "no thousands separators" in told("S,f,2", "S,f,x")
    assert "cells.csv:4: 2 columns; the first line names 3" in told("S,f,2", "S,f")


def test_a_workbook_with_days_lost_zeros_and_text_among_numbers(tmp_path, capsys):
    from datetime import date

    from openpyxl import Workbook

    book = Workbook()
    book.active.append(["region", "nace", "day", "turnover"])
    for i in range(300):
        entry = "n/a" if i == 4 else 2.5 * i
        book.active.append(["NSEW"[i * 7 % 4], (1, 2, 7, 10)[i * 3 % 4], date(2024, 1 + i % 11, 3), entry])
    book.save(tmp_path / "firms.xlsx")
    assert main(["init", str(tmp_path / "firms.xlsx")]) == 0
    told = capsys.readouterr().err
    assert "turnover: value: numbers, and its name suggests an amount; 1 entry is not a number, in line 6 first" in told
    assert "days are rarely a dimension (switched off)" in told


def test_the_hierarchy_beside_records_is_found_by_its_codes(tmp_path, capsys):
    lines = [f"{town},{'sl'[k % 2]},{k + 1}" for k, town in enumerate(["Aa", "Bb", "Cc"] * 20)]
    (tmp_path / "firms.csv").write_text("\n".join(["town,size,turnover", *lines]))
    (tmp_path / "places.hrc").write_text("North\n@Aa\n@Bb\nSouth\n@Cc\n@Dd\n")
    (tmp_path / "others.hrc").write_text("North\n@Aa\n@Bb\nSouth\n@Dd\n")  # has not all of them
    (tmp_path / "above.hrc").write_text("Aa\n@a1\n@a2\nBb\n@b1\nCc\n@c1\n")  # the towns are no leaves there
    assert main(["init", str(tmp_path / "firms.csv")]) == 0
    job = read_job(tmp_path / "job.toml").job
    assert job.dimensions["town"].hierarchy == "places.hrc"
    assert job.dimensions["size"].hierarchy is None


def test_numbers_with_signs_between_thousands_are_recognised(tmp_path):
    from cellguard.jobs.proposal.records import propose_job

    for sign, between in ((",", ","), (".", ";")):
        lines = [between.join(("region", "size", "turnover"))]
        for k in range(300):
            number = f"{1000 + 7919 * k:,}".replace(",", sign)
            lines.append(between.join(("NSWE"[k % 4], "abc"[k % 3], f'"{number}"')))
        path = tmp_path / "records.csv"
        path.write_text("\n".join(lines) + "\n")
        draft = propose_job(path, tmp_path)
        assert any("signs between thousands" in line for line in draft.told)
        assert "value" in draft.unconfirmed


def test_marks_for_missing_data_get_a_hint(tmp_path):
    import pytest

    import cellguard as cg

    lines = [f"{'NS'[k % 2]},{'NA' if k % 40 == 0 else k}" for k in range(200)]
    (tmp_path / "records.csv").write_text("\n".join(["region,turnover", *lines]) + "\n")
    with pytest.raises(cg.CellguardError) as caught:
        cg.tabulate(tmp_path / "records.csv", by=["region"], value="turnover")
    assert "marks such as NA" in (caught.value.hint or "")
