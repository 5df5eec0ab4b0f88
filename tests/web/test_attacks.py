"""Attacks on the server: everybody but this user at this machine is refused, and nothing outside of the folder is seen."""

import gzip
import io
import json
import stat
import zipfile

import httpx
import pytest
from pages import project_in, served, survey_in

from cellguard.web.security import HEADERS


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    outer = tmp_path_factory.mktemp("machine")
    (outer / "secret.csv").write_text("region,turnover\nN,1\nN,2\nS,3\nS,4\n", encoding="utf-8")
    folder = outer / "given"
    folder.mkdir()
    project_in(folder)
    (folder / "link.csv").symlink_to(outer / "secret.csv")
    (folder / "out").symlink_to(outer)
    return folder


@pytest.fixture(scope="module")
def client(place):
    with served(place, "--max-upload", "1") as found:
        yield found


def bare(client, **headers):
    return httpx.Client(base_url=client.base, headers=headers)


@pytest.mark.parametrize(
    "path", ["/", "/api/projects", "/p/demo/data", "/static/style.css", "/api/openapi.json", "/texts/en.json"]
)
def test_nothing_without_the_token(client, path):
    with bare(client) as nobody:
        assert nobody.get(path).status_code == 401
        assert nobody.get(path, headers={"authorization": "Bearer wrong"}).status_code == 401
        cookie = f"cellguard-{client.base[17:]}=wrong"
        assert nobody.get(path, headers={"cookie": cookie}).status_code == 401


def test_the_link_gives_a_cookie_that_scripts_and_other_sites_do_not_get(client):
    with bare(client) as browser:
        assert browser.get("/enter?token=wrong").status_code == 401
        entered = browser.get(f"/enter?token={client.token}")
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert client.token not in cookie
        assert browser.get("/api/projects").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1.evil.example:80", ""])
def test_a_wrong_host_is_refused(client, host):
    assert client.get("/api/projects", headers={"host": host}).status_code in (400, 421)


def test_changes_from_another_page_are_refused(client):
    with bare(client) as browser:
        browser.get(f"/enter?token={client.token}")
        body = {"name": "stolen"}
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1", client.base.replace("http", "https")):
            assert browser.post("/api/projects", json=body, headers={"origin": origin}).status_code == 403
            assert browser.get("/api/projects", headers={"origin": origin}).status_code == 403
        assert browser.post("/api/projects", json=body).status_code == 403  # a browser always says its origin
        cross = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
        assert browser.get("/api/projects", headers=cross).status_code == 403
        assert browser.post("/api/projects", json={"name": "ours"}, headers={"origin": client.base}).status_code == 201
        assert browser.delete("/api/projects/ours", headers={"origin": client.base}).status_code == 200


def test_every_answer_says_what_browsers_must_not_do(client):
    with bare(client) as nobody:
        answers = [
            client.get("/"),
            client.get("/api/projects"),
            client.get("/static/main.js"),
            client.get("/nothing"),
            nobody.get("/"),
        ]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def test_pages_hold_no_inline_script_and_fetch_nothing_from_elsewhere(client):
    for path in ("/", "/p/demo/data"):
        text = client.get(path).text
        assert "<script>" not in text
        assert " on" + "click" not in text
        assert "style=" not in text
        assert "http://" not in text.replace(client.base, "")
        assert "https://" not in text


@pytest.mark.parametrize(
    "name",
    [
        "../secret.csv",
        "../../etc/passwd",
        "/etc/passwd",
        "link.csv",
        "out/secret.csv",
        "demo/../../secret.csv",
        "a\x00b.csv",
    ],
)
def test_files_outside_of_the_folder_are_not_read(client, name):
    for path, asked in (
        ("columns", {"file": name}),
        ("data", {"files": [name]}),
        ("data", {"files": ["enterprises.csv", name]}),
    ):
        answer = client.post(f"/api/projects/demo/{path}", json=asked)
        assert answer.status_code == 422
        assert "outside" in answer.json()["message"]
    assert name not in [entry["name"] for entry in client.get("/api/projects/demo").json()["files"]]


@pytest.mark.parametrize(
    "sections",
    [
        {"data": {"file": "../../secret.csv"}},
        {"data": {"file": "../link.csv"}},
        {"data": {"file": "../out/*.csv"}},
        {"data": {"file": "../o*/secret.csv"}},
        {"data": {"table": "/etc/passwd"}},
        {"data": {"file": "../enterprises.csv", "template": "../out/secret.csv"}},
        {"dimensions": {"region": {"hierarchy": "../../secret.csv"}}},
        {"tables": [{"dimensions": ["region"], "file": "../out/secret.csv"}]},
        {"tables": [{"dimensions": ["region"], "hierarchies": {"region": "../../secret.csv"}}]},
    ],
)
def test_a_job_that_names_files_outside_is_not_taken(client, place, sections):
    before = (place / "demo" / "job.toml").read_bytes()
    answer = client.put("/api/projects/demo/job/data", json={"sections": sections})
    assert answer.status_code == 422
    assert "outside" in json.dumps(answer.json()["mistakes"])
    assert (place / "demo" / "job.toml").read_bytes() == before


def test_outputs_cannot_go_outside(client):
    for output in (
        *({"folder": f} for f in ("../../stolen", "../out/stolen", "/tmp/stolen")),
        {"layout": "../out/x.xlsx"},
    ):
        answer = client.put("/api/projects/demo/job/protect", json={"sections": {"output": output}})
        assert answer.status_code == 422
        assert "outside" in answer.text


def test_a_job_on_the_disk_that_points_outside_is_not_run(client, place):
    trap = place / "trap"
    trap.mkdir(exist_ok=True)
    (trap / "job.toml").write_text(
        '[data]\nfile = "../../secret.csv"\n[dimensions.region]\n[[rules]]\nrule = "min_frequency"\nn = 3\n',
        encoding="utf-8",
    )
    assert client.post("/api/projects/trap/work/protect").status_code == 422
    assert client.post("/api/projects/trap/counts", json={"sections": {}}).status_code == 422
    assert client.post("/api/projects/trap/table", json={}).status_code == 422


@pytest.mark.parametrize("project", ["..", "%2e%2e", "..%2f..", "~~", "out", "demo%2f..%2fdemo", "nothing"])
def test_only_projects_below_the_folder_are_addressed(client, project):
    assert client.get(f"/api/projects/{project}").status_code in (404, 405)


def test_projects_are_not_made_elsewhere(client):
    for name in ("../x", "/tmp/x", ".hidden", "", "a/b", "a\x00", "x" * 200):
        assert client.post("/api/projects", json={"name": name}).status_code == 422


def test_uploads_are_private_and_removed_as_told(client, place):
    made = client.put("/api/projects/demo/files/mine.csv", content=b"a,b\n1,2\n")
    assert made.json() == {"file": "demo/uploads/mine.csv"}
    path = place / "demo" / "uploads" / "mine.csv"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert client.delete("/api/projects/demo/files/mine.csv").status_code == 200
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["..%2fjob.toml", "job.toml", ".hidden.csv", "x.py", "x.html", "%2e%2e%2fx.csv", "a%00.csv", "-x.csv"]
)
def test_uploads_have_harmless_names(client, place, name):
    before = sorted((place / "demo").iterdir())
    assert client.put(f"/api/projects/demo/files/{name}", content=b"x").status_code in (404, 405, 422)
    assert sorted((place / "demo").iterdir()) == before


def workbook_bomb():
    """A small workbook that says it unpacks to more than a gigabyte."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/workbook.xml", b"<x/>")
    packed = bytearray(out.getvalue())
    entry = packed.index(b"PK\x01\x02")
    packed[entry + 24 : entry + 28] = (2 << 30).to_bytes(4, "little")
    return bytes(packed)


def test_too_large_an_upload_leaves_nothing(client, place):
    def endless():
        for _ in range(40):
            yield b"x" * 65536

    large = b"x" * (2 << 20)
    assert client.put("/api/projects/demo/files/big.csv", content=large).status_code == 413
    try:
        answer = client.put("/api/projects/demo/files/big.csv", content=endless())  # says no length before
        assert answer.status_code == 413
    except httpx.TransportError:
        pass  # the server hung up before the client had sent everything
    bombs = {"bomb.csv.gz": gzip.compress(b"0" * (200 << 20)), "bomb.xlsx": workbook_bomb(), "none.xlsx": b"PK none"}
    for name, bomb in bombs.items():
        assert client.put(f"/api/projects/demo/files/{name}", content=bomb).status_code == 422
    assert list((place / "demo" / "uploads").iterdir()) == []


def test_too_large_a_request_is_refused(client):
    assert client.post("/api/projects", content=b" " * (5 << 20)).status_code == 413


def test_a_request_of_the_wrong_shape_is_not_repeated(client):
    answer = client.post("/api/projects/demo/counts", json={"sections": "secret 4711"})
    assert answer.status_code == 400
    assert "4711" not in answer.text


def test_downloads_are_files_of_releases_only(client):
    for part, name in (("public", "..%2fjob.toml"), ("internal", "%2e%2e"), ("other", "x"), ("public", "x")):
        assert client.get(f"/api/projects/demo/files/{part}/{name}?release=release").status_code in (400, 404, 405)
        assert client.get(f"/api/projects/demo/files/{part}/{name}?release=..").status_code in (400, 404, 405)


def test_the_language_leads_to_no_other_site(client):
    for back in ("//evil.example", "https://evil.example", "/\\evil.example"):
        assert client.get("/language/de", params={"back": back}).headers["location"] == "/"


def test_only_the_loopback_interface_is_listened_to(client):
    import psutil

    listening = [c.laddr.ip for c in psutil.Process(client.server.pid).net_connections() if c.status == "LISTEN"]
    assert listening == ["127.0.0.1"]


def test_memory_of_the_server(client):
    import psutil

    client.post("/api/projects/demo/counts", json={"sections": {}})
    assert psutil.Process(client.server.pid).memory_info().rss < 500 << 20


def test_codes_and_names_with_html_stay_text(tmp_path):
    survey_in(tmp_path)
    nasty = "<img src=x onerror=alert(1)>"
    rows = "\n".join(f"{code},{i}" for code in (nasty, "'; DROP TABLE x", "c") for i in range(1, 8))
    (tmp_path / "nasty.csv").write_text(f"<b>col</b>,turnover\n{rows}\n", encoding="utf-8")
    with served(tmp_path) as client:
        client.post("/api/projects", json={"name": "n"})
        assert client.post("/api/projects/n/data", json={"files": ["nasty.csv"]}).status_code == 200
        facts = client.post("/api/projects/n/columns", json={"file": "nasty.csv"})
        assert facts.headers["content-type"] == "application/json"
        assert nasty in facts.json()["columns"][0]["examples"]
        assert nasty not in client.get("/p/n/data").text
