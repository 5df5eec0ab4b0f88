"""The card "List of tables": the plan of a publication, its picture and its job, and clear errors."""

import pytest
from pages import project_in, served

LIST = """table_name,field,indicator,hrc_indicator,spanning_1,hrc_spanning_1,spanning_2,hrc_spanning_2
T1,france,to_pizza,,nuts2,hrc_nuts,size,
T2,france,to_pizza,,nuts3,hrc_nuts,size,
T3,france,to_pizza,,a10,hrc_naf,nuts2,hrc_nuts
T4,france,to_fruit,,a10,hrc_naf,size,
"""


@pytest.fixture
def client(tmp_path):
    project_in(tmp_path, "plan", n=600)
    (tmp_path / "list.csv").write_text(LIST)
    (tmp_path / "wrong.csv").write_text(LIST.replace("table_name", "name_of_it"))
    with served(tmp_path) as found:
        yield found


def test_a_list_of_tables_becomes_a_plan(chromium, client, tmp_path):
    before = (tmp_path / "plan" / "job.toml").read_text()
    page = chromium.new_context().new_page()
    page.set_default_timeout(60_000)
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(client.link)
    page.goto(f"{client.base}/p/plan/data")
    page.wait_for_selector("#view[data-ready]")
    page.locator("#plan-card summary").first.click()
    page.get_by_label("List of tables", exact=True).select_option("list.csv")
    page.get_by_role("button", name="Show the plan").click()
    page.wait_for_selector("#clusters li")
    assert "4 tables become 3 in 2 clusters." in page.locator("#plan").inner_text()
    assert "T1.T2" in page.locator("#clusters").inner_text()
    page.wait_for_function("() => document.querySelector('#plan-picture').naturalWidth > 0")
    assert page.locator("#plan a[download]").count() >= 1
    page.get_by_label("List of tables", exact=True).select_option("wrong.csv")
    page.get_by_role("button", name="Show the plan").click()
    page.wait_for_selector("#plan >> text=wrong.csv")
    assert (tmp_path / "plan" / "job.toml").read_text() == before
    assert faults == []
    page.context.close()


def test_the_plan_is_that_of_python(client, tmp_path):
    import cellguard as cg

    answer = client.post("/api/projects/plan/plan", json={"file": "list.csv"}).json()
    plan = cg.plan_tables(tmp_path / "list.csv")
    assert {name: answer[name] for name in ("listed", "tables", "clusters")} == plan.summary()
    assert answer["picture"] == plan.draw()
    assert all("[[tables]]" in text for _, text in answer["jobs"])
    outside = client.post("/api/projects/plan/plan", json={"file": "../list.csv"})
    assert outside.status_code >= 400
