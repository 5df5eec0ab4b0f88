"""No work is lost and nothing signed is replaced: undo, stale pages, uploads, hierarchies, signatures."""

import zipfile
from io import BytesIO

import pytest
from pages import JOB, picture, project_in, served, wait_for
from playwright.sync_api import expect

from cellguard.exceptions import InputError
from cellguard.jobs import read_job
from cellguard.jobs.runner import run
from cellguard.web.texts import LANGUAGES

expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    project_in(folder, n=600)
    return folder


@pytest.fixture(scope="module")
def client(place):
    with served(place) as found:
        yield found


@pytest.fixture
def page(chromium, client):
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    made = context.new_page()
    made.set_default_timeout(60_000)
    faults = []
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.goto(client.link)
    ready(made)
    yield made
    context.close()
    assert faults == []


def ready(page):
    page.wait_for_selector("#view[data-ready]")


def go(page, client, project, step, query=""):
    page.goto(f"{client.base}/p/{project}/{step}{query}")
    ready(page)


def copy_of(client, place, name):
    """Make another project with the same job."""
    folder = place / name
    folder.mkdir()
    (folder / "job.toml").write_text(JOB, encoding="utf-8")
    return f"/api/projects/{name}"


def test_every_change_is_undone_and_repeated(client, place):
    base = copy_of(client, place, "undone")
    first = (place / "undone" / "job.toml").read_text()
    assert client.post(f"{base}/undo").status_code == 422
    client.put(f"{base}/job/method", json={"sections": {"method": {"name": "round"}}})
    client.post(f"{base}/decisions", json={"codes": {"region": "Aldmark", "size": "0 to 9"}, "decision": "withhold"})
    assert (place / "undone" / "decisions.hst").read_text().strip()
    client.post(f"{base}/data", json={"files": ["enterprises.csv"]})
    told = client.get(base).json()
    assert told["undo"] == 3
    assert client.post(f"{base}/undo").json()["part"] == "data"
    assert client.post(f"{base}/undo").json()["part"] == "look"
    assert not (place / "undone" / "decisions.hst").exists() or not (place / "undone" / "decisions.hst").read_text()
    assert client.post(f"{base}/undo").json()["part"] == "method"
    assert (place / "undone" / "job.toml").read_text() == first
    assert client.post(f"{base}/redo").json()["redo"] == 2
    assert client.get(base).json()["job"]["method"]["name"] == "round"


def test_a_stale_page_changes_nothing(client, place):
    base = copy_of(client, place, "stale")
    seen = {"x-job-version": client.get(base).json()["version"]}
    body = {"sections": {"method": {"name": "round"}}}
    assert client.put(f"{base}/job/method", json=body, headers=seen).status_code == 200
    before = (place / "stale" / "job.toml").read_bytes()
    for path, sent in (("data", {"files": ["enterprises.csv"]}), ("undo", None), ("work/protect", None)):
        answer = client.post(f"{base}/{path}", json=sent, headers=seen)
        assert answer.status_code == 409, path
        assert "another window" in answer.json()["message"]
    late = {"sections": {"method": {"name": "adjust"}}}
    assert client.put(f"{base}/job/method", json=late, headers=seen).status_code == 409
    assert (place / "stale" / "job.toml").read_bytes() == before


def test_two_windows(page, chromium, client, place):
    copy_of(client, place, "windows")
    go(page, client, "windows", "method")
    other = page.context.new_page()
    go(other, client, "windows", "rules")
    other.get_by_label("p, in per cent").fill("15")
    expect(other.locator("#undo")).to_be_enabled()
    page.get_by_label("Controlled rounding").check()
    expect(page.locator("#reload")).to_be_visible()
    picture(page, "stale")
    job = client.get("/api/projects/windows").json()["job"]
    assert job["rules"][0]["p"] == 15
    assert job["method"]["name"] == "suppress"
    page.locator("#reload").click()
    ready(page)
    expect(page.locator("#undo")).to_have_text("Undo: Rules")
    page.locator("#undo").click()
    page.wait_for_url("**/rules")
    ready(page)
    expect(page.get_by_label("p, in per cent")).to_have_value("10")


def test_an_added_file_discards_nothing(page, client, place, tmp_path):
    copy_of(client, place, "added")
    before = (place / "added" / "job.toml").read_bytes()
    go(page, client, "added", "data")
    tree = tmp_path / "sizes.csv"
    tree.write_text("class,size\nsmall,0 to 9\nsmall,10 to 49\nlarge,50 to 249\nlarge,250 and more\n")
    page.get_by_text("Other files", exact=True).click()
    page.get_by_label("Or drop files here").set_input_files(str(tree))
    expect(page.locator("#added")).to_contain_text("Nothing in the project has changed")
    expect(page.locator("#added")).to_contain_text("sizes.csv has the codes of size")
    assert (place / "added" / "job.toml").read_bytes() == before
    page.get_by_role("button", name="Use it for size").click()
    picture(page, "added")
    size = page.get_by_role("group", name="size", exact=True)
    expect(size.locator(".preview")).to_contain_text("The file has every code of the data")
    # a link asks before it leaves the page
    page.locator(".steps a", has_text="Rules").click()
    expect(page.get_by_text("changes that are not saved")).to_be_visible()
    page.get_by_role("button", name="Save and go on").click()
    page.wait_for_url("**/rules")
    assert client.get("/api/projects/added").json()["job"]["dimensions"]["size"]["hierarchy"] == "uploads/sizes.csv"
    # a file of this name with other content does not replace the first
    again = client.put("/api/projects/added/files/sizes.csv", content=b"other,size\nA,B\n").json()
    assert again["file"] == "added/uploads/sizes-2.csv"
    assert "Nothing" not in (place / "added" / "uploads" / "sizes.csv").read_text()
    assert client.delete("/api/projects/added/files/sizes.csv").status_code == 422  # the job uses it
    assert client.delete("/api/projects/added/files/sizes-2.csv").status_code == 200


def test_a_hierarchy_has_its_own_upload_with_a_preview(page, client, place, tmp_path):
    copy_of(client, place, "tree")
    go(page, client, "tree", "data")
    lacks = tmp_path / "lacks.csv"
    lacks.write_text("class,size\nsmall,0 to 9\nsmall,10 to 49\nlarge,50 to 249\n")
    page.get_by_label("Hierarchy of size").select_option("file")
    size = page.get_by_role("group", name="size", exact=True)
    size.get_by_label("Or upload one").set_input_files(str(lacks))
    expect(size.locator(".preview")).to_contain_text("250 and more")
    assert size.get_by_label("File of the hierarchy").input_value() == "uploads/lacks.csv"
    picture(page, "hierarchy")


def test_starting_again_asks_and_is_undone(page, client, place):
    copy_of(client, place, "again")
    before = (place / "again" / "job.toml").read_bytes()
    go(page, client, "again", "data")
    page.get_by_text("Other files", exact=True).click()
    page.locator("#use").click()
    assert (place / "again" / "job.toml").read_bytes() == before
    expect(page.locator("#use")).to_contain_text("Yes")
    page.locator("#use").click()
    expect(page.locator("#undo")).to_have_text("Undo: Data")
    assert (place / "again" / "job.toml").read_bytes() != before
    page.locator("#undo").click()
    ready(page)
    expect(page.locator("#redo")).to_be_enabled()
    assert (place / "again" / "job.toml").read_bytes() == before


def test_the_sample_project(page, client, place):
    page.goto(f"{client.base}/")
    ready(page)
    page.locator("#sample").click()
    page.wait_for_url("**/p/sample/data")
    ready(page)
    assert client.get("/api/projects/sample").json()["mistakes"] == []
    client.post("/api/projects/sample/work/protect")
    assert wait_for(client, "sample")["state"] == "done"


def check_downloads(client):
    answer = client.get("/api/projects/demo/files/public/turnover.csv?release=release")
    assert 'filename="PUBLIC_demo_release_turnover.csv"' in answer.headers["content-disposition"]
    answer = client.get("/api/projects/demo/files/internal/cells.csv?release=release")
    assert 'filename="CONFIDENTIAL_demo_release_cells.csv"' in answer.headers["content-disposition"]
    answer = client.get("/api/projects/demo/public.zip?release=release")
    assert "PUBLIC_demo_release.zip" in answer.headers["content-disposition"]
    with zipfile.ZipFile(BytesIO(answer.content)) as archive:
        names = {name.partition("/")[2] for name in archive.namelist()}
    assert {"turnover.csv", "turnover.xlsx", "report.html", "manifest.json"} <= names
    assert "cells.csv" not in names


def check_signatures(page, client, place):
    go(page, client, "demo", "sign")
    page.get_by_label("Signed by").fill("A. Meyer")
    page.get_by_label("I have read").check()
    page.get_by_role("button", name="Sign this release").click()
    expect(page.get_by_text("now protected")).to_be_visible()
    checker = page.locator("#checker")
    checker.get_by_label("Checked by").fill("a. meyer")
    checker.get_by_label("Approve").check()
    checker.get_by_label("Comment").fill("margins compared")
    checker.get_by_role("button", name="Save the verdict").click()
    expect(checker).to_contain_text("same person")
    checker.get_by_label("Checked by").fill("B. Schulz")
    checker.get_by_role("button", name="Save the verdict").click()
    expect(page.locator("#checked")).to_contain_text("Approved by B. Schulz")
    picture(page, "signed")
    # it is not signed again, not replaced by a run of the page or the command, and not removed
    signed = (place / "demo" / "release" / "signed.json").read_bytes()
    whole = (place / "demo" / "release" / "public" / "turnover.csv").read_bytes()
    again = {"release": "release", "who": "C", "read": True}
    assert client.post("/api/projects/demo/releases/sign", json=again).status_code == 422
    assert client.post("/api/projects/demo/work/protect").status_code == 422
    with pytest.raises(InputError, match="signed by A"):
        run(read_job(place / "demo" / "job.toml"))
    assert client.delete("/api/projects/demo").status_code == 422
    assert client.request("DELETE", "/api/projects/demo", json={"signers": ["C"]}).status_code == 422
    assert (place / "demo" / "release" / "signed.json").read_bytes() == signed
    # the page makes a new version
    go(page, client, "demo", "protect")
    expect(page.get_by_text("The next version goes to release-v2")).to_be_visible()
    with page.expect_response(lambda answer: answer.url.endswith("/work/protect") and answer.request.method == "POST"):
        page.locator("#start").click()
    assert wait_for(client, "demo")["state"] == "done"
    assert (place / "demo" / "release-v2" / "public" / "turnover.csv").read_bytes() == whole
    assert (place / "demo" / "release" / "public" / "turnover.csv").read_bytes() == whole
    what = [line["what"] for line in client.get("/api/projects/demo/ledger").json()["entries"]]
    assert what == ["released", "signed", "approved", "released"]


def check_rejection(client):
    sign = {"release": "release-v2", "who": "A. Meyer", "read": True}
    assert client.post("/api/projects/demo/releases/sign", json=sign | {"manifest": "0" * 64}).status_code == 422
    assert client.post("/api/projects/demo/releases/sign", json=sign).status_code == 200
    verdict = {"release": "release-v2", "who": "B. Schulz", "tables": {}}
    assert client.post("/api/projects/demo/releases/verdict", json=verdict).status_code == 422
    verdict["tables"] = {"turnover": {"approved": False, "comment": "too many gaps"}}
    found = client.post("/api/projects/demo/releases/verdict", json=verdict).json()
    assert found["checker"]["approved"] is False
    assert client.request("DELETE", "/api/projects/demo", json={"signers": ["B. Schulz"]}).status_code == 422


def check_sheet(chromium, client, language, scheme):
    from axe_playwright_python.sync_playwright import Axe

    context = chromium.new_context(viewport={"width": 1280, "height": 800}, locale=language, color_scheme=scheme)
    made = context.new_page()
    made.goto(client.link)
    ready(made)
    go(made, client, "demo", "signoff", "?release=release")
    shown = made.locator(".sheet").inner_text()
    for part in ("A. Meyer", "B. Schulz", "margins compared", "enterprises.csv", "regions.hrc", "600", "10"):
        assert part in shown, part
    assert ("Erstellt von" in shown) == (language == "de")
    picture(made, f"signoff-{language}-{scheme}")
    printed = made.pdf(format="A4")
    assert printed.count(b"/Type /Page\n") == 1 or printed.count(b"/Type /Page/") + printed.count(b"/Type /Page ") == 1
    told = Axe().run(made).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"][:200]) for v in told if v["impact"] in ("serious", "critical")] == []
    made.set_viewport_size({"width": 360, "height": 740})
    assert made.evaluate("document.documentElement.scrollWidth <= innerWidth + 1")
    context.close()


def check_removal(page, client, place):
    page.goto(f"{client.base}/")
    ready(page)
    row = page.locator("tr", has=page.get_by_role("link", name="demo", exact=True))
    row.get_by_role("button").click()
    row.get_by_role("button").click()
    expect(row).to_contain_text("signed releases")
    row.get_by_label("Who signed its releases").fill("A. Meyer")
    row.get_by_role("button").click()
    expect(page.get_by_role("link", name="demo", exact=True)).to_have_count(0)
    assert not (place / "demo").exists()


def test_a_release_from_its_signature_to_its_removal(page, chromium, client, place):
    client.post("/api/projects/demo/work/protect")
    assert wait_for(client, "demo")["state"] == "done"
    check_downloads(client)
    check_signatures(page, client, place)
    check_rejection(client)
    for language in LANGUAGES:
        for scheme in ("light", "dark"):
            check_sheet(chromium, client, language, scheme)
    check_removal(page, client, place)


def test_a_document_gets_its_own_hint(client, place):
    copied = survey_copy(place)
    answer = client.put(f"/api/projects/{copied}/files/tables.docx", content=b"x")
    assert answer.status_code == 422
    assert "save the table alone" in answer.json()["hint"]


def survey_copy(place):
    """Make a project without data."""
    folder = place / "document"
    folder.mkdir()
    (folder / "job.toml").write_text('name = "document"\n')
    return folder.name
