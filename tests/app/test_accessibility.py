"""Pages as a browser shows them: axe-core finds nothing, and they print on A4 without being cut."""

from __future__ import annotations

import html
import importlib.resources
import json
import re
import shutil
import subprocess

import pytest

from discreet.app.policy.run import run_policy
from tests.app.test_first_hour import business, hospital
from tests.servers import unavailable

_RECORDS = """
data:
  source: discharges.csv
  rest: identifier
  roles: {sex: quasi, postcode: quasi, icd: confidential}
  hierarchies: {postcode: {prefixes: [2]}, sex: {rare: 5}}
releases:
  - {name: records, kind: anonymize, models: [{k-anonymity: 5}], method: generalization}
about: {purpose: research, pdf: false}
"""
_TABLE = """
data:
  source: survey.xlsx
  roles: {firm_id: identifier, sector: quasi, region: quasi, size: quasi, turnover: confidential}
releases:
  - name: table
    kind: table
    by: [sector, region, size]
    measure: turnover
    rules: [{p-percent: 10}, {minimum-frequency: 3}]
    method: suppression
about: {purpose: statistics, units: {turnover: EUR}, pdf: false}
"""
#: Runs the checker in each page, and writes what all of them found into the outer one.
_INSIDE = (
    "<script>{axe}</script><script>axe.run(document).then(found => parent.postMessage([{number}, "
    "found.violations.map(v => [v.id, v.impact, v.nodes.map(n => n.html)]), found.passes.length], "
    "'*'))</script></body>"
)
_OUTSIDE = """<!doctype html><body><pre id="found"></pre><script>
const found = {{}};
onmessage = event => {{
  found[event.data[0]] = event.data.slice(1);
  if (Object.keys(found).length == {pages})
    document.getElementById('found').textContent = JSON.stringify(found);
}};
</script>{frames}</body>"""


def browser() -> str:
    """Return a browser without a window."""
    for name in ("chromium-headless-shell", "chromium"):
        if found := shutil.which(name):
            return found
    unavailable("no chromium: scripts/system-packages installs it")
    raise AssertionError


def browse(*arguments):
    """Run the browser, which has nothing to do with any host."""
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def judged(pages, folder):
    """Return what axe-core says of pages: its findings, and how many of its checks passed."""
    axe = (importlib.resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    frames = ""
    for number, page in enumerate(pages):
        inside = page.replace("</body>", _INSIDE.format(axe=axe, number=number))
        frames += f"<iframe width=1000 height=4000 srcdoc='{html.escape(inside)}'></iframe>"
    outer = folder / "outer.html"
    outer.write_text(_OUTSIDE.format(pages=len(pages), frames=frames), encoding="utf-8")
    shown = browse("--virtual-time-budget=60000", "--dump-dom", outer.as_uri())
    told = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)[1]))
    return [told[str(number)] for number in range(len(pages))]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    hospital(folder)
    business(folder)
    for name, text in (("records", _RECORDS), ("table", _TABLE)):
        (folder / f"{name}.yaml").write_text(text)
        run_policy(folder / f"{name}.yaml", folder / f"out-{name}")
    return [
        folder / f"out-{name}/{file}"
        for name in ("records", "table")
        for file in (f"{name}/report.html", f"handover/{name}.html")
    ]


@pytest.mark.xdist_group("pages")
def test_axe_finds_nothing_in_reports(pages, tmp_path):
    bad = "<!doctype html><html><body><img src='x'><p style='color:#eee'>pale</p></body></html>"
    texts = [page.read_text(encoding="utf-8") for page in pages]
    *found, control = judged([*texts, bad], tmp_path)
    for page, (violations, passed) in zip(pages, found, strict=True):
        assert violations == [], page
        assert passed > 10
    # The same way finds what is wrong in a page that is.
    assert {"image-alt", "color-contrast", "html-has-lang"} <= {one[0] for one in control[0]}


@pytest.mark.xdist_group("pages")
def test_nothing_of_a_report_is_wider_than_a_sheet(pages, tmp_path):
    # A4 less its margins is 178 mm, 672 pixels; on paper nothing scrolls.
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "@media print" in text
        measured = text.replace("@media print", "@media all").replace(
            "</body>",
            "<script>document.title = document.documentElement.scrollWidth</script></body>",
        )
        (tmp_path / "page.html").write_text(measured, encoding="utf-8")
        shown = browse("--window-size=672,900", "--dump-dom", (tmp_path / "page.html").as_uri())
        assert int(re.search(r"<title>(\d+)</title>", shown)[1]) <= 672, page
