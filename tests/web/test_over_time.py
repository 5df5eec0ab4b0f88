"""The card "Over time": a period and derived statistics are saved in the job, and nothing else of it is lost."""

import tomllib

import pytest
from pages import project_in, served


@pytest.fixture
def place(tmp_path):
    """A folder of its own for each test, as every test here changes the job."""
    project = project_in(tmp_path, "time", n=600)
    more = '\n[ledger]\noffice = "stat"\nfolder = "."\nperiod = "2025Q1"\n'
    (project / "job.toml").write_text((project / "job.toml").read_text() + more)
    return tmp_path


@pytest.fixture
def client(place):
    with served(place) as found:
        yield found


def read_job(place):
    return tomllib.loads((place / "time" / "job.toml").read_text())


def test_a_period_and_a_statistic_are_saved(chromium, client, place):
    context = chromium.new_context()
    page = context.new_page()
    page.set_default_timeout(60_000)
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(client.link)
    page.goto(f"{client.base}/p/time/protect")
    page.wait_for_selector("#view[data-ready]")
    assert page.get_by_label("Reference period").input_value() == "2025Q1"
    page.get_by_label("Reference period").fill("2025Q2")
    page.get_by_label("Values of periods add up").check()
    page.get_by_role("button", name="Add a statistic").click()
    row = page.locator("#derived .fields").first
    row.get_by_label("Name").fill("share of the region")
    row.get_by_label("Kind").select_option("share")
    with page.expect_response(lambda answer: "/job/protect" in answer.url and answer.request.method == "PUT") as saved:
        row.get_by_label("Divided by").fill("region=Total")
    assert saved.value.ok
    page.wait_for_function("() => true")
    told = read_job(place)
    assert told["ledger"] == {"office": "stat", "folder": ".", "period": "2025Q2", "additive": True}
    assert told["derived"][0]["name"] == "share of the region"
    context.close()
    assert faults == []


def test_sections_of_the_ledger_are_taken_and_its_problems_are_reported(client, place):
    sections = {"ledger": {"period": "2025Q3", "office": "stat"}}
    answer = client.put("/api/projects/time/job/protect", json={"sections": sections}).json()
    assert answer["mistakes"] == []
    assert read_job(place)["ledger"] == sections["ledger"]
    (place / "time" / "ledger.jsonl").write_text(
        '{"when": "2025", "what": "released", "release": "r", "before": "x"}\n'
    )
    found = client.get("/api/projects/time/ledger").json()
    assert not found["whole"]
    assert found["problems"] == ["line 1: does not follow from the line before it."]
