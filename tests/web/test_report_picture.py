"""The report in a browser: nothing is fetched, nothing overflows, rows fold."""

import json
import shutil
import subprocess

import pytest

import cellguard as cg
from cellguard.datasets.examples import salazar2004_figure1
from cellguard.jobs.report import Content, write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
PROBE = """
<script>
window.addEventListener("load", function () {
  var wide = [].filter.call(document.querySelectorAll("main > *"), function (e) { return e.getBoundingClientRect().right > innerWidth; });
  var fold = document.querySelector("button.fold:not([disabled])");
  var before = document.querySelectorAll("tr[data-depth]:not([hidden])").length;
  fold.click();
  var after = document.querySelectorAll("tr[data-depth]:not([hidden])").length;
  var words = [].map.call(document.querySelectorAll("svg text"), function (t) { return t.getBoundingClientRect(); });
  var small = words.filter(function (r) { return r.height < 7; }).length;
  document.title = JSON.stringify({wide: wide.length, before: before, after: after, words: words.length, small: small});
});
</script>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_report_in_a_browser(tmp_path):
    release = cg.intervals(salazar2004_figure1())
    write_report(
        tmp_path / "report.html", Content(title="t", release=release, audit=release.audit(exact=True)), public=False
    )
    page = (tmp_path / "report.html").read_text(encoding="utf-8").replace("</body>", PROBE + "</body>")
    (tmp_path / "probe.html").write_text(page, encoding="utf-8")
    words = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1240,1600"]
    words += [f"--screenshot={tmp_path / 'report.png'}", "--dump-dom", (tmp_path / "probe.html").as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    title = done.stdout.partition("<title>")[2].partition("</title>")[0]
    seen = json.loads(title)
    assert seen == {"wide": 0, "before": 4, "after": 1, "words": done.stdout.count("</text>"), "small": 0}
    assert done.stdout.count("</text>") > 10
    assert (tmp_path / "report.png").stat().st_size > 20_000
