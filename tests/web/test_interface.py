"""The HTTP interface: it edits the job, runs it, and gives the bytes that the command gives."""

import csv
import json
import re
import subprocess
import sys
import time
import tomllib

import pytest
from pages import project_in, served, survey_in, tables_in, wait_for

from cellguard.web.texts import LANGUAGES, read_texts


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    project_in(folder)
    return folder


@pytest.fixture(scope="module")
def client(place):
    with served(place) as found:
        yield found


@pytest.fixture(scope="module")
def done(client):
    client.post("/api/projects/demo/work/protect")
    found = wait_for(client, "demo")
    assert found["state"] == "done", found
    return found


def endless_in(folder):
    """Make a project whose search goes on until it is stopped."""
    place = project_in(folder)
    (place / "job.toml").write_text((place / "job.toml").read_text().replace("rounds = 3", "rounds = 1000000"))
    return place


def files(folder, without=()):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.name not in without}


def test_the_page_and_the_command_give_the_same_bytes(client, place, done):
    ours, theirs = place / "demo" / "release", place / "demo" / "by-command"
    # The job that was run, as the release keeps it: other tests may have changed the project since.
    (place / "demo" / "then.toml").write_bytes((ours / "internal" / "job.toml").read_bytes())
    words = [sys.executable, "-m", "cellguard", "protect", "then.toml", "--out", "by-command", "--quiet"]
    subprocess.run(words, cwd=place / "demo", check=True, capture_output=True)
    assert files(ours / "public") == files(theirs / "public")
    changing = ("report.html", "timing.json", "signature.json")  # seconds are signed too
    assert files(ours / "internal", changing) == files(theirs / "internal", changing)


def test_a_release_of_the_command_is_looked_at_like_one_of_the_page(client, place, done):
    facts = client.post("/api/projects/demo/table", json={"release": "release"}).json()
    assert facts["method"] == "suppress"
    assert facts["counts"]["primary"] == done["events"][-1]["result"]["primary"]
    assert facts["counts"]["secondary"] == done["events"][-1]["result"]["secondary"]


def test_the_progress_was_told_and_is_found_again(client, place, done):
    phases = [event["phase"] for event in done["events"] if "phase" in event]
    assert phases == ["tabulate", "flag", "protect", "audit", "write"]
    kept = json.loads((place / "demo" / ".cellguard" / "protect.json").read_text())
    assert kept["events"] == done["events"]
    text = client.get("/api/projects/demo/work/protect/events").text
    assert text.count("data:") == len(done["events"]) + 1
    assert 'event: state\ndata: "done"' in text


def test_why_a_cell_is_withheld(client, done):
    source = {"release": "release"}
    axes = client.post("/api/projects/demo/table", json=source).json()["views"][0]["axes"]
    window = {**source, "rows": 0, "columns": 1, "down": axes[0]["id"], "across": axes[1]["id"]}
    found = client.post("/api/projects/demo/table/window", json=window).json()
    kinds = client.post("/api/projects/demo/table", json=source).json()["kinds"]
    marked = client.post("/api/projects/demo/table/marked", json=window).json()
    hidden = [
        (r, c)
        for r, line in enumerate(found["kinds"])
        for c, k in enumerate(line)
        if kinds[k] in ("primary", "secondary")
    ]
    assert [tuple(place) for place in marked] == hidden
    assert all(found["texts"][r][c] == "x" for r, c in hidden)
    seen = set()
    for r, c in hidden:
        where = {**source, "codes": {0: axes[0]["id"][r], 1: axes[1]["id"][c]}}
        cell = client.post("/api/projects/demo/table/cell", json=where).json()
        seen.add(cell["kind"])
        if cell["kind"] == "primary":
            assert cell["reasons"]
            assert cell["ranges"][0]["lowest"] <= cell["value"] <= cell["ranges"][0]["highest"]
        else:
            told = client.post("/api/projects/demo/table/protects", json=where).json()
            assert told["known"]
            [found] = client.post("/api/projects/demo/table/range", json=where).json()["ranges"]
            assert found["lowest"] <= cell["value"] <= found["highest"]
            assert found["highest"] > found["lowest"]
    assert seen == {"primary", "secondary"}


def test_a_changed_rule_changes_the_counts_at_once(client):
    rules = [{"rule": "min_frequency", "n": n, "percent": 10} for n in (1, 5, 50)]
    counts = []
    for rule in rules:
        begin = time.process_time()
        found = client.post("/api/projects/demo/counts", json={"sections": {"rules": [rule]}}).json()
        counts.append((found["sensitive"], time.process_time() - begin))
    assert counts[0][0] < counts[1][0] < counts[2][0]
    assert max(seconds for _, seconds in counts[1:]) < 2.0  # of work, however busy the machine is


def test_wrong_input_is_told_beside_its_field_and_changes_nothing(client, place):
    before = (place / "demo" / "job.toml").read_bytes()
    wrong = {
        "rules": ({"rules": [{"rule": "p_percent", "p": "ten"}]}, ["rules", 0, "p"]),
        "method": ({"method": {"name": "round", "base": -1}}, ["method", "base"]),
        "data": ({"dimensions": {"reginn": {}}}, ["dimensions", "reginn"]),
        "protect": ({"output": {"formats": []}}, ["output", "formats"]),
    }
    for part, (sections, path) in wrong.items():
        answer = client.put(f"/api/projects/demo/job/{part}", json={"sections": sections})
        assert answer.status_code == 422
        assert path in [mistake["path"] for mistake in answer.json()["mistakes"]]
    assert (place / "demo" / "job.toml").read_bytes() == before


def test_the_page_refuses_a_seed_where_values_are_hidden_by_chance(client, place):
    project = place / "secret"
    project.mkdir()
    path = project / "job.toml"
    text = (place / "demo" / "job.toml").read_text().replace("seed = 1\n", "")
    path.write_text(text.replace('name = "suppress"\nrounds = 3', 'name = "perturb"'))
    before = path.read_bytes()
    answer = client.put("/api/projects/secret/job/protect", json={"sections": {"seed": 1}})
    assert answer.status_code == 422
    told = {tuple(mistake["path"]): mistake["text"] for mistake in answer.json()["mistakes"]}
    assert "a seed is not a secret" in told["seed",]
    sections = {"method": {"name": "perturb", "key": "../../etc/key"}}
    outside = client.put("/api/projects/secret/job/method", json={"sections": sections})
    assert outside.status_code == 422
    assert "lies outside" in outside.json()["mistakes"][0]["text"]
    assert path.read_bytes() == before
    path.write_text("seed = 1\n" + path.read_text())  # a job of an earlier version
    assert "a seed is not a secret" in client.post("/api/projects/secret/work/protect").text


def test_a_section_of_another_page_is_refused(client):
    assert client.put("/api/projects/demo/job/rules", json={"sections": {"output": {}}}).status_code == 404


def test_a_draft_is_the_one_of_cellguard_init(client, place):
    client.post("/api/projects", json={"name": "drafted"})
    client.post("/api/projects/drafted/data", json={"files": ["enterprises.csv"]})
    words = [sys.executable, "-m", "cellguard", "init", "../enterprises.csv", "--out", "other.toml"]
    subprocess.run(words, cwd=place / "drafted", check=True, capture_output=True)
    assert (place / "drafted" / "job.toml").read_text() == (place / "drafted" / "other.toml").read_text()
    (place / "drafted" / "other.toml").unlink()


def test_examples_are_codes_and_never_amounts_or_names(client):
    columns = client.post("/api/projects/demo/columns", json={"file": "enterprises.csv"}).json()["columns"]
    shown = {column["name"] for column in columns if column["examples"]}
    assert shown == {"region", "activity", "size"}


def test_decisions_are_lines_of_the_job(client, place):
    cell = {"region": "Total", "size": "0 to 9"}
    for decision, expected in (
        ("protect", "manual"),
        ("publish", "a_priori"),
        ("withhold", "a_priori"),
        ("none", None),
    ):
        answer = client.post("/api/projects/demo/decisions", json={"codes": cell, "decision": decision})
        assert answer.status_code == 200, answer.text
        job = tomllib.loads((place / "demo" / "job.toml").read_text())
        made = [rule["rule"] for rule in job["rules"] if rule["rule"] in ("manual", "a_priori")]
        assert made == ([expected] if expected else [])
        assert client.post("/api/projects/demo/counts", json={"sections": {}}).status_code == 200


def test_several_files_make_a_publication_whose_cells_are_decided_by_hand(client, place):
    tables_in(place)
    client.post("/api/projects", json={"name": "linked"})
    answer = client.post("/api/projects/linked/data", json={"files": ["by_size.csv", "by_form.csv"]})
    assert answer.status_code == 200, answer.text
    assert answer.json()["told"]
    found = client.post("/api/projects/linked/counts", json={"sections": {}}).json()
    assert found["sensitive"] > 0
    assert sum(rule["cells"] for rule in found["rules"]) >= found["sensitive"]
    facts = client.post("/api/projects/linked/table", json={}).json()
    assert len(facts["views"]) == 2
    region, second = facts["views"][0]["axes"]
    where = {"codes": {region["index"]: region["id"][-1], second["index"]: second["id"][-1]}}
    cell = client.post("/api/projects/linked/table/cell", json=where).json()
    assert (cell["decision"], cell["sensitive"]) == ("none", False)
    for decision in ("protect", "withhold", "publish", "none"):
        asked = {"codes": cell["codes"], "decision": decision}
        assert client.post("/api/projects/linked/decisions", json=asked).status_code == 200
        again = client.post("/api/projects/linked/table/cell", json=where).json()
        assert again["decision"] == decision
        assert again["sensitive"] == (decision == "protect")
        assert again["fixed"] == (decision == "publish")


SIZES = "region,size,n_obs,turnover\nS,large,9,500\nN,small,2,40\nN,Total,2,40\nS,small,8,200\nTotal,small,10,240\n"
SIZES += "Total,Total,19,740\nS,Total,17,700\nTotal,large,9,500\n"  # no line for N, large: nobody is there
FORMS = "region,form,n_obs,turnover\nTotal,Total,19,740\nS,Total,17,700\nN,Total,2,40\nS,a,9,450\nS,b,8,250\nN,a,1,30\n"
FORMS += "N,b,1,10\nTotal,a,10,480\nTotal,b,9,260\n"


def test_a_publication_is_shown_as_it_was_published_in_any_order_of_rows(client, place):
    (place / "sizes.csv").write_text(SIZES)
    (place / "forms.csv").write_text(FORMS)
    client.post("/api/projects", json={"name": "orders"})
    assert client.post("/api/projects/orders/data", json={"files": ["sizes.csv", "forms.csv"]}).status_code == 200
    assert client.post("/api/projects/orders/work/protect").status_code == 202
    assert wait_for(client, "orders")["state"] == "done"
    [name] = [entry["name"] for entry in client.get("/api/projects/orders/releases").json()]
    views = client.post("/api/projects/orders/table", json={"release": name}).json()["views"]
    for number, view in enumerate(views):
        down, across = view["axes"]
        asked = {"release": name, "view": number, "rows": down["index"], "columns": across["index"]}
        asked |= {"down": down["id"], "across": across["id"]}
        texts = client.post("/api/projects/orders/table/window", json=asked).json()["texts"]
        with (place / "orders" / name / "public" / f"{view['name']}.csv").open(newline="") as stream:
            rows = {(row[down["name"]], row[across["name"]]): row["value"] or "x" for row in csv.DictReader(stream)}
        shown = {(r, c): texts[i][j] for i, r in enumerate(down["code"]) for j, c in enumerate(across["code"])}
        assert {place: shown[place] for place in rows} == rows
        assert {text for place, text in shown.items() if place not in rows} <= {"–"}


def test_what_can_be_chosen_is_what_the_program_has(client):
    from cellguard.jobs.definition.rule_sections import RULE_SECTIONS
    from cellguard.methods.registry import METHODS

    offered = client.get("/api/choices").json()
    assert [method["name"] for method in offered["methods"]] == list(METHODS)
    assert [rule["name"] for rule in offered["rules"]] == list(RULE_SECTIONS)
    for method in offered["methods"]:
        for option in method["options"]:
            for value in option["choices"]:
                sections = {"method": {"name": method["name"], option["key"]: value}}
                answer = client.post("/api/projects/demo/counts", json={"sections": sections})
                wrong = [m for m in answer.json().get("mistakes", []) if m["path"] == ["method", option["key"]]]
                assert not any("input" in m["text"].lower() for m in wrong), (method["name"], option["key"], value)


def test_a_script_drives_everything_by_the_description_alone(client):
    described = client.get("/api/openapi.json").json()
    paths = described["paths"]
    body = paths["/api/projects/{project}/data"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    named = described["components"]["schemas"][body["$ref"].rpartition("/")[2]]
    assert set(named["properties"]) == {"files"}
    client.post("/api/projects", json={"name": "script"})
    assert client.post("/api/projects/script/data", json={"files": ["enterprises.csv"]}).status_code == 200
    changed = {"sections": {"method": {"name": "round"}}}
    assert client.put("/api/projects/script/job/method", json=changed).json()["mistakes"] == []
    assert client.post("/api/projects/script/work/protect").status_code == 202
    client.delete("/api/projects/script/work/protect")
    wait_for(client, "script")
    assert client.delete("/api/projects/script").json() == {"removed": "script"}


def test_signing_binds_to_what_was_signed(client, place, done):
    def sign(**given):
        return client.post(
            "/api/projects/demo/releases/sign", json={"release": "release", "who": "A. Meyer", "read": True, **given}
        )

    assert sign(who=" ").status_code == 422
    assert sign(read=False).status_code == 422
    assert sign().status_code == 200
    told = {entry["name"]: entry for entry in client.get("/api/projects/demo/releases").json()}
    assert told["release"]["signed"]["unchanged"]
    path = place / "demo" / "release" / "public" / "turnover.csv"
    whole = path.read_bytes()
    path.write_bytes(whole + b"\n")
    assert sign().status_code == 422
    checked = client.post("/api/projects/demo/releases/check", json={"release": "release"}).json()
    assert not checked["accepted"]
    path.write_bytes(whole)
    assert "signed already" in sign().json()["message"]


def test_reports_are_shown_in_a_box_without_an_origin(client, done):
    answer = client.get("/api/projects/demo/report/internal?release=release")
    assert answer.headers["content-security-policy"].startswith("sandbox allow-scripts;")
    assert "allow-same-origin" not in answer.headers["content-security-policy"]


def test_one_solve_at_a_time_and_a_stop_that_leaves_nothing(tmp_path):
    place = endless_in(tmp_path)
    with served(tmp_path) as client:
        first = client.post("/api/projects/demo/work/protect").json()
        second = client.post("/api/projects/demo/work/protect").json()
        assert (first["state"], second["state"]) == ("running", "waiting")
        assert client.post("/api/projects/demo/work/protect").json()["number"] == second["number"]
        client.delete("/api/projects/demo/work/protect")
        shown = client.get("/api/projects/demo/work/protect").json()
        assert (shown["number"], shown["state"]) == (first["number"], "running")
        assert client.delete("/api/projects/demo").status_code == 422  # the first one is still at work
    assert not (place / "release" / "public").exists()


def test_stop_gives_the_best_safe_result(tmp_path):
    endless_in(tmp_path)
    with served(tmp_path) as client:
        client.post("/api/projects/demo/work/protect")
        for _ in range(600):
            events = client.get("/api/projects/demo/work/protect").json()["events"]
            if any("best" in event for event in events):
                break
            time.sleep(0.1)
        client.delete("/api/projects/demo/work/protect")
        found = wait_for(client, "demo")
        assert found["state"] == "done", found["events"][-1]
        assert client.get("/api/projects/demo/releases").json()[0]["safe"] is True


def test_a_server_that_is_killed_takes_its_work_with_it(tmp_path):
    import psutil

    place = endless_in(tmp_path)
    with served(tmp_path) as client:
        client.post("/api/projects/demo/work/protect")
        for _ in range(100):
            children = psutil.Process(client.server.pid).children(recursive=True)
            if children:
                break
            time.sleep(0.1)
        client.server.kill()
        gone, alive = psutil.wait_procs(children, timeout=20)
        assert gone
        assert not alive
    assert not (place / "release" / "public").exists()


def test_languages_have_the_same_texts():
    english = read_texts("en")
    for code in LANGUAGES:
        own = read_texts(code)
        assert set(own) == set(english)
        for key, text in own.items():
            assert text.strip()
            assert set(_filled(text)) == set(_filled(english[key])), key


def test_sentences_that_are_translated_are_said_by_the_program():
    """Each stands in the package as it is written here: a sentence that was changed there would stay English."""
    from pathlib import Path

    import cellguard

    package = Path(cellguard.__file__).parent
    sources = " ".join(f.read_text(encoding="utf-8") for f in package.rglob("*.py"))
    said = {key: text for key, text in read_texts("en").items() if key.startswith("said.")}
    assert len(said) > 50
    for key, text in said.items():
        for piece in re.split(r"\{\d\}", text):  # as a whole, or put together of two
            cuts = [k for k, letter in enumerate(piece) if letter == " "]
            assert piece in sources or any(piece[:k] in sources and piece[k:] in sources for k in cuts), key


def _filled(text):
    import re

    return re.findall(r"\{(\w+)\}", text)


def test_every_text_that_a_module_asks_for_is_there():
    import re
    from importlib import resources

    modules = (path for path in (resources.files("cellguard.web") / "static").iterdir() if path.name.endswith(".js"))
    asked = {key for path in modules for key in re.findall(r'\bt\("([a-z_.]+)"', path.read_text(encoding="utf-8"))}
    assert len(asked) > 100
    assert asked <= set(read_texts("en"))


def test_the_interface_is_described(client):
    described = client.get("/api/openapi.json").json()
    assert {"/api/projects", "/api/projects/{project}/work/{kind}", "/api/projects/{project}/table/window"} <= set(
        described["paths"]
    )
    for methods in described["paths"].values():
        for entry in methods.values():
            assert entry["description"] or entry["summary"]


def test_nothing_of_the_data_is_said_on_the_terminal(tmp_path):
    survey_in(tmp_path)
    words = [sys.executable, "-m", "cellguard", "serve", str(tmp_path / "nothing"), "--no-open"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no such folder" in done.stderr
