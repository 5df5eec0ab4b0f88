"""The page in a real browser: the whole road, wrong input, large tables, and for everybody."""

import json
import re
import tomllib

import numpy as np
import pytest
from pages import JOB, picture, project_in, served, survey_in, tables_in
from playwright.sync_api import expect

STEPS = ("data", "rules", "method", "protect", "look", "sign", "releases")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return survey_in(tmp_path_factory.mktemp("given"), n=900)


@pytest.fixture(scope="module")
def client(place):
    with served(place) as found:
        yield found


@pytest.fixture
def page(chromium, client):
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    made = context.new_page()
    made.set_default_timeout(60_000)
    faults = []
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on("console", lambda m: faults.append(m.text) if m.type == "error" and "422" not in m.text else None)
    made.goto(client.link)
    ready(made)
    yield made
    context.close()
    assert faults == []


def ready(page):
    page.wait_for_selector("#view[data-ready]")


expect.set_options(timeout=30_000)


def go(page, client, project, step, query=""):
    page.goto(f"{client.base}/p/{project}/{step}{query}")
    ready(page)


def mistake(page, label):
    """Return the message beside a field."""
    field = page.locator(".field.wrong", has=page.get_by_label(label, exact=True))
    field.locator(".mistake").first.wait_for()
    return field.locator(".mistake").first.inner_text()


def test_the_road_from_a_file_to_signed_files(page, client, place, tmp_path):
    # a project; a wrong name is told beside its field
    page.get_by_label("Name of the project").fill("../x")
    page.get_by_role("button", name="Create the project").click()
    assert "letters" in mistake(page, "Name of the project")
    assert page.get_by_label("Name of the project").input_value() == "../x"
    page.get_by_label("Name of the project").fill("road")
    page.get_by_role("button", name="Create the project").click()
    page.wait_for_url("**/p/road/data")
    ready(page)
    # data: upload, a wrong kind of file first
    wrong = tmp_path / "report.pdf"
    wrong.write_bytes(b"x")
    page.get_by_label("Or drop files here").set_input_files(str(wrong))
    assert "not taken" in mistake(page, "Or drop files here")
    page.get_by_label("Or drop files here").set_input_files(str(place / "enterprises.csv"))
    page.get_by_role("heading", name="What each column is").wait_for()
    picture(page, "data")
    shown = page.locator("table.plain").inner_text()
    assert "Aldmark" in shown
    assert "E00001" not in shown
    # which column is what: size instead of activity, and a hierarchy drawn by hand
    page.get_by_label("What it is: activity").select_option("")
    page.get_by_label("What it is: size").select_option("dimension")
    draw_hierarchy(page)
    page.get_by_label("Hierarchy of size").select_option("digits")
    page.get_by_label("Digits of each level").fill("one")
    page.get_by_role("button", name="Save", exact=True).click()
    assert "number" in mistake(page, "Digits of each level")
    assert page.get_by_label("Digits of each level").input_value() == "one"
    page.get_by_label("Hierarchy of size").select_option("flat")
    page.get_by_role("button", name="Save and continue").click()
    page.wait_for_url("**/rules")
    job = tomllib.loads((place / "road" / "job.toml").read_text())
    assert set(job["dimensions"]) == {"region", "size"}
    assert job["dimensions"]["region"]["hierarchy"]["North"] == ["Aldmark", "Birkhaven"]
    rules(page)
    method(page)
    protect(page, place)
    look(page)
    sign(page, client, place)


def draw_hierarchy(page):
    page.get_by_label("Hierarchy of region").select_option("drawn")
    region = page.get_by_role("group", name="region", exact=True)
    region.get_by_role("button", name="Create the group").click()
    assert "needed" in mistake(page, "New group")
    region.get_by_label("New group").fill("North")
    region.get_by_role("button", name="Create the group").click()
    for code in ("Aldmark", "Birkhaven"):
        region.get_by_label(code, exact=True).check()
    region.get_by_label("Put the selected codes below").select_option("North")
    region.get_by_role("button", name="Move", exact=True).click()
    picture(page, "tree")


def sensitive(page):
    return int(page.locator("#sensitive").inner_text())


def rules(page):
    page.locator("#sensitive").wait_for()
    before = sensitive(page)
    picture(page, "rules")
    page.get_by_label("p, in per cent").fill("ten")
    assert "number" in mistake(page, "p, in per cent")
    assert page.get_by_label("p, in per cent").input_value() == "ten"
    page.get_by_label("p, in per cent").fill("80")
    expect(page.locator("#sensitive")).not_to_have_text(str(before))
    assert sensitive(page) > before
    page.locator(".grid td.sensitive").first.click()
    page.get_by_text("Why it is sensitive").wait_for()
    page.get_by_label("p, in per cent").fill("10")
    expect(page.locator("#sensitive")).to_have_text(str(before))
    page.get_by_role("link", name="Next: Method").click()
    page.wait_for_url("**/method")


def method(page):
    ready(page)
    page.get_by_role("radio", name="Controlled rounding").check()
    page.get_by_label("Base", exact=True).fill("-5")
    assert "above 0" in mistake(page, "Base")
    page.get_by_role("radio", name="Cell suppression").check()
    page.get_by_label("Rounds of improvement").fill("3")
    page.get_by_text("Saved in job.toml").wait_for()
    page.get_by_label("Seconds for each method").fill("soon")
    page.get_by_role("button", name="Compare", exact=True).click()
    assert "seconds" in mistake(page, "Seconds for each method")
    page.get_by_label("Seconds for each method").fill("3")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.locator("#comparison").wait_for(timeout=120_000)
    assert page.locator("#comparison tbody tr").count() == 5
    picture(page, "method")
    page.get_by_role("link", name="Next: Protect").click()
    page.wait_for_url("**/protect")


def protect(page, place):
    ready(page)
    page.get_by_label("Time limit, in seconds").fill("-1")
    assert "at least 0" in mistake(page, "Time limit, in seconds")
    page.get_by_label("Time limit, in seconds").fill("60")
    page.get_by_text("Saved in job.toml").wait_for()
    page.locator("#start").click()
    page.wait_for_selector("#state[data-state=done]", timeout=120_000)
    picture(page, "protect")
    assert tomllib.loads((place / "road" / "job.toml").read_text())["limits"]["time_limit_s"] == 60
    page.get_by_role("link", name="Look at the release").click()
    page.wait_for_url("**/look*")


def look(page):
    ready(page)
    page.locator(".grid td.primary").first.click()
    page.get_by_text("What an attacker can infer").wait_for()
    picture(page, "look")
    page.get_by_label("Decide by hand").wait_for()
    # by the keyboard alone
    grid = page.get_by_role("grid")
    grid.focus()
    page.keyboard.press("Control+Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    active = page.locator(f"#{grid.get_attribute('aria-activedescendant')}")
    assert (active.get_attribute("data-r"), active.get_attribute("data-c")) == ("1", "1")
    rows = int(grid.get_attribute("aria-rowcount"))
    page.keyboard.press("Control+Home")
    page.keyboard.press("-")
    assert int(grid.get_attribute("aria-rowcount")) < rows
    page.keyboard.press("+")
    assert int(grid.get_attribute("aria-rowcount")) == rows
    page.get_by_label("Search for a code").fill("birk")
    page.get_by_text("1 of 1").wait_for()
    page.get_by_role("button", name="Swap rows and columns").click()
    page.get_by_role("button", name="Next marked cell").click()


def sign(page, client, place):
    go(page, client, "road", "sign")
    assert page.locator("#verdict").inner_text() == "Safe"
    page.get_by_role("button", name="Check files and proof").click()
    page.get_by_text("files are unchanged.").wait_for()
    page.get_by_role("button", name="Sign this release").click()
    page.get_by_text("Enter your own name.").wait_for()
    page.get_by_label("Signed by").fill("A. Meyer")
    page.get_by_label("I have read the report and the audit").check()
    page.get_by_role("button", name="Sign this release").click()
    page.get_by_text("Signed by A. Meyer").wait_for()
    with page.expect_download() as begun:
        page.get_by_role("link", name="enterprises.csv").click()
    taken = begun.value.path().read_bytes()
    assert taken == (place / "road" / "enterprises-release" / "public" / "enterprises.csv").read_bytes()
    assert page.locator("#job").inner_text().strip() == (place / "road" / "job.toml").read_text().strip()
    picture(page, "sign")
    go(page, client, "road", "releases")
    assert "A. Meyer" in page.locator("table.plain").first.inner_text()
    assert "no line was changed" in page.locator("#view").inner_text()
    assert page.locator("#ledger tbody tr").count() == 2  # released, signed
    picture(page, "releases")


@pytest.fixture(scope="module")
def released(client, place):
    """A project with two releases, made by the interface."""
    from pages import wait_for

    folder = place / "two"
    folder.mkdir()
    for name, how in (("first", 'name = "suppress"\nrounds = 2'), ("second", 'name = "intervals"')):
        job = JOB.replace('name = "suppress"\nrounds = 3', how).replace('folder = "release"', f'folder = "{name}"')
        job = job.replace("seed = 1\n", "") + "\n[ledger]\nagain = true\n"  # intervals refuse a seed
        (folder / "job.toml").write_text(job)
        begun = client.post("/api/projects/two/work/protect")
        assert begun.status_code == 202, begun.text
        assert wait_for(client, "two")["state"] == "done"
    return "two"


@pytest.mark.parametrize("look", ["light", "dark", "small"])
def test_everybody_can_use_every_page(chromium, client, released, look):
    from axe_playwright_python.sync_playwright import Axe

    size = {"width": 390, "height": 780} if look == "small" else {"width": 1280, "height": 900}
    context = chromium.new_context(
        viewport=size,
        color_scheme="dark" if look == "dark" else "light",
        locale="de-DE" if look == "small" else "en-GB",
    )
    page = context.new_page()
    page.goto(client.link)
    ready(page)
    found = {}
    for step in (None, *STEPS):
        if step is not None:
            go(page, client, released, step)
        if step in ("rules", "look"):
            page.locator(".grid td").first.wait_for()
        picture(page, f"{step or 'home'}-{look}")
        told = Axe().run(page).response["violations"]
        serious = [(v["id"], v["nodes"][0]["html"][:200]) for v in told if v["impact"] in ("serious", "critical")]
        if serious:
            found[step] = serious
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 1, step
        if look == "small" and step == "data":  # what has to be chosen is on the screen
            box = page.locator("table.columns select").first.bounding_box()
            assert box["x"] + box["width"] <= 390
        if look == "small" and step == "look":  # numbers as the language writes them
            shown = page.locator(".grid td").all_inner_texts()
            assert any(re.fullmatch(r"\d{1,3}(\.\d{3})+(,\d+)?", text) for text in shown)
            assert not any(re.search(r",\d{3}", text) for text in shown)
        if step == "look":
            cut = "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.innerText)"
            assert page.locator(".grid td").evaluate_all(cut) == []
    if look == "small":
        assert page.locator("h1").inner_text() == "Veröffentlichungen"
    context.close()
    assert found == {}, json.dumps(found, indent=1)


def test_the_program_speaks_the_language_of_the_page(chromium, client, place, released):
    context = chromium.new_context(locale="de-DE")
    page = context.new_page()
    page.goto(client.link)
    ready(page)
    page.get_by_label("Name des Projekts").fill("../x")
    page.get_by_role("button", name="Projekt anlegen").click()
    page.locator(".mistake", has_text="Buchstaben, Ziffern").first.wait_for()
    go(page, client, released, "data")
    assert "Schlüssel, jeder im Mittel von" in page.locator("table.plain").first.inner_text()
    go(page, client, released, "rules")
    page.get_by_text("Mindestzahl (3)").first.wait_for()
    page.locator(".grid td.sensitive").first.click()
    page.locator(
        "aside li", has_text=re.compile("weniger als 3 Beitragende|könnte den größten Beitrag")
    ).first.wait_for()
    assert "erscheinen auf Englisch" in page.locator("main").inner_text()
    context.close()


def test_two_releases_side_by_side(page, client, released):
    go(page, client, released, "look", "?release=first&beside=second")
    page.locator(".grid td.interval").first.wait_for()
    assert page.get_by_role("grid").count() == 2
    picture(page, "beside")


def test_several_files_make_a_publication(page, client, place):
    tables_in(place)
    client.post("/api/projects", json={"name": "publication"})
    go(page, client, "publication", "data")
    page.locator("#use").click()
    page.get_by_text("Choose a file first.").wait_for()
    page.get_by_label("by_size.csv", exact=True).check()
    page.get_by_label("by_form.csv", exact=True).check()
    page.get_by_role("button", name="Use these 2 files as a publication").click()
    page.get_by_text("What was recognised").wait_for()
    picture(page, "publication")
    page.get_by_role("button", name="Save and continue").click()
    page.wait_for_url("**/rules")
    ready(page)
    assert sensitive(page) > 0
    go(page, client, "publication", "protect")
    page.locator("#start").click()
    page.wait_for_selector("#state[data-state=done]", timeout=120_000)
    held = []  # the cells of the first table are still on their way when another is chosen
    page.route("**/table/window", lambda route: route.continue_() if held else held.append(route))
    page.get_by_role("link", name="Look at the release").click()
    page.wait_for_url("**/look*")
    ready(page)
    page.get_by_label("Table", exact=True).select_option(label="region by size")
    page.locator(".grid td.primary").first.wait_for()
    held[0].continue_()
    page.unroute("**/table/window")
    page.get_by_label("Table", exact=True).select_option(label="region by form")
    page.locator(".grid th.corner", has_text="form").wait_for()
    page.locator(".grid td.published").last.wait_for()
    # a decision, and the table is protected again
    page.locator(".grid td.published").last.click()
    page.get_by_label("Decide by hand").select_option("protect")
    page.get_by_role("link", name="Protect again").click()
    page.wait_for_url("**/protect")
    assert "manual" in (place / "publication" / "job.toml").read_text()


def test_dimensions_change_places(page, client, place):
    folder = place / "three"
    folder.mkdir()
    more = '[dimensions.size]\n\n[dimensions.activity]\nhierarchy = "../activities.hrc"\n'
    (folder / "job.toml").write_text(JOB.replace("[dimensions.size]\n", more))
    go(page, client, "three", "look")
    rows, columns = page.get_by_label("Rows"), page.get_by_label("Columns")
    grid = page.get_by_role("grid")
    page.locator(".grid td.sensitive").first.wait_for()

    def lie(row, column, fold):
        assert rows.evaluate("e => e.selectedOptions[0].text") == row
        assert columns.evaluate("e => e.selectedOptions[0].text") == column
        page.get_by_label(f"Filter: {fold}").wait_for()
        assert page.get_by_label("Filter:").count() == 1

    lie("activity", "region", "size")
    columns.select_option(label="activity")  # it lay in the rows: the two change places
    lie("region", "activity", "size")
    rows.select_option(label="size")  # from the filter
    lie("size", "activity", "region")
    page.get_by_role("button", name="Swap rows and columns").click()
    lie("activity", "size", "region")
    page.get_by_label("Filter: region").select_option(index=2)
    assert "rows=activity&columns=size" in page.url
    page.reload()
    ready(page)
    lie("activity", "size", "region")
    whole = int(grid.get_attribute("aria-rowcount"))
    page.get_by_role("button", name="Fold all", exact=True).click()
    assert int(grid.get_attribute("aria-rowcount")) < whole
    page.get_by_role("button", name="Unfold all").click()
    assert int(grid.get_attribute("aria-rowcount")) == whole


def test_close_and_come_back_and_stop(chromium, client, place):
    folder = place / "long"
    folder.mkdir()
    (folder / "job.toml").write_text(JOB.replace("rounds = 3", "rounds = 1000000"))
    context = chromium.new_context()
    first = context.new_page()
    first.goto(client.link)
    ready(first)
    go(first, client, "long", "protect")
    first.locator("#start").click()
    first.wait_for_selector("#state[data-state=running]")
    first.close()
    again = context.new_page()
    go(again, client, "long", "protect")
    again.wait_for_selector("#state[data-state=running]")
    again.get_by_text("cost so far").wait_for(timeout=120_000)
    again.locator("#stop").click()
    again.wait_for_selector("#state[data-state=done]", timeout=90_000)
    picture(again, "protect-stopped")
    context.close()


def test_a_table_of_a_hundred_thousand_cells(page, client, place):
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 1000, 30_000), rng.integers(0, 99, 30_000), rng.integers(1, 1000, 30_000)
    lines = [f"a{a:04d},b{b:02d},{x}" for a, b, x in zip(*rows, strict=True)]
    (place / "large.csv").write_text("\n".join(["area,branch,turnover", *lines]) + "\n")
    folder = place / "large"
    folder.mkdir()
    (folder / "job.toml").write_text(
        'insiders = false\n[data]\nfile = "../large.csv"\nvalue = "turnover"\n[dimensions.area]\n[dimensions.branch]\n'
        '[[rules]]\nrule = "min_frequency"\nn = 2\npercent = 10\n'
    )
    go(page, client, "large", "look")
    page.locator(".grid td.sensitive").first.wait_for()
    grid = page.get_by_role("grid")
    page.get_by_role("button", name="Unfold all").click()
    assert int(grid.get_attribute("aria-rowcount")) >= 1000
    assert int(grid.get_attribute("aria-rowcount")) * int(grid.get_attribute("aria-colcount")) >= 100_000
    took = page.evaluate(
        """async () => {
          const grid = document.querySelector(".grid"), times = [];
          for (let k = 1; k <= 30; k += 1) {
            grid.scrollTop = k * 870;
            grid.scrollLeft = k * 300;
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            times.push(Number(grid.dataset.ms));
          }
          return times.sort((a, b) => a - b)[15];
        }"""
    )
    assert took < 50
    assert page.locator(".grid td").count() < 2500
    page.get_by_label("Search for a code").fill("a0777")
    page.get_by_text("1 of 1").wait_for()
    head = page.locator(".grid tr.found th")
    assert "a0777" in head.inner_text()
    assert head.is_visible()
    expect(page.locator(".grid tr.found td", has_text="…")).to_have_count(0)
    picture(page, "large")


def test_html_in_codes_and_names_stays_text(page, client, place):
    nasty = "<img src=x onerror=document.title='caught'>"
    rows = "\n".join(f"{code},{i}" for code in (nasty, "<b>b</b>", "c") for i in range(1, 9))
    (place / "nasty.csv").write_text(f"<i>col</i>,turnover\n{rows}\n", encoding="utf-8")
    client.post("/api/projects", json={"name": "nasty"})
    assert client.post("/api/projects/nasty/data", json={"files": ["nasty.csv"]}).status_code == 200
    go(page, client, "nasty", "data")
    assert nasty in page.locator("table.plain").inner_text()
    go(page, client, "nasty", "look")
    page.locator(".grid td").first.wait_for()
    assert nasty in page.locator(".grid").inner_text()
    assert page.locator("main img").count() == 0
    assert "caught" not in page.title()


def test_the_same_project_made_by_hand_is_shown(page, client, place):
    project_in(place / "hand" if (place / "hand").mkdir() is None else place, "mine", n=300)
    page.goto(client.base)
    ready(page)
    page.get_by_role("link", name="hand/mine").click()
    ready(page)
    assert page.get_by_label("Hierarchy of region").input_value() == "file"
