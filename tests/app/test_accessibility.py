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
from discreet.page import Page, Pivot, Section
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


#: A4 less its margins is 178 mm, 672 pixels; on paper nothing scrolls.
SHEET = 672


def printed_width(page, folder):
    """Return how wide a page is on paper, in pixels."""
    text = page.read_text(encoding="utf-8")
    assert "@media print" in text
    measured = text.replace("@media print", "@media all").replace(
        "</body>", "<script>document.title = document.documentElement.scrollWidth</script></body>"
    )
    (folder / "measured.html").write_text(measured, encoding="utf-8")
    place = (folder / "measured.html").as_uri()
    shown = browse(f"--window-size={SHEET},900", "--dump-dom", place)
    return int(re.search(r"<title>(\d+)</title>", shown)[1])


@pytest.mark.xdist_group("pages")
def test_nothing_of_a_report_is_wider_than_a_sheet(pages, tmp_path):
    for page in pages:
        assert printed_width(page, tmp_path) <= SHEET, page


def more_pages(folder):
    """Return every other kind of page that the product writes, by name."""
    import numpy as np
    import pandas as pd
    from typer.testing import CliRunner

    import discreet as dc
    from discreet.app.cli.main import build
    from discreet.app.policy.advice import advise
    from discreet.data.source import Source
    from discreet.protocols.retrieval.evaluation import retrieval_risk
    from discreet.protocols.search import Vocabulary, search_risk
    from discreet.protocols.search.pictures import search_page
    from discreet.queries import evaluation
    from discreet.randomness import Randomness
    from tests.protocols.joint.rehearsed import rehearse_table
    from tests.protocols.joint.test_secondary import SQL, agreed, owners
    from tests.protocols.retrieval.served import built

    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, 300),
            "town": rng.choice(["n", "s"], 300),
            "pay": np.arange(300) + 0.25,
        }
    )
    people = dc.read(
        frame, roles={"age": "quasi", "town": "quasi", "pay": "confidential"}, name="people"
    )
    seeded = Randomness.seeded(1)
    steps = [dc.Microaggregation(["age"], k=5), dc.Rounding("pay", 0.5)]
    quasi = dc.read(frame, roles=dict.fromkeys(frame, "quasi"))
    ran = CliRunner().invoke(build(), ["demo", "-o", str(folder / "demo"), "--rows", "500"])
    assert ran.exit_code == 0, ran.output
    with dc.open_ledger() as ledger:
        table = dc.tabulate(people, by=["town"], measure="pay")
        table.protect([dc.MinimumFrequency(4)], ledger=ledger).write(folder / "t", ledger=ledger)
        joint = dc.joint_audit(ledger).page()
    together, _ = rehearse_table(owners(1), SQL, agreed(), margins=True)
    words = Vocabulary.zipf(300)
    asked = evaluation.generated(people, 10, rng=seeded)
    return {
        "advice": advise(Source(str(hospital(folder))), seconds=2).page().html(),
        "advice on tables": advise(Source(str(business(folder))), kind="table", seconds=2)
        .page()
        .html(),
        "demo": (folder / "demo/report.html").read_text(encoding="utf-8"),
        "masked": (dc.mask(people, steps).write(folder / "m") / "report.html").read_text(),
        "synthetic": (
            dc.synthesize(quasi, dc.CART(min_leaf=20)).write(folder / "s") / "report.html"
        ).read_text(),
        "permuted": (
            dc.permute(people, sensitive="pay", k=4, e=100).write(folder / "p") / "report.html"
        ).read_text(),
        "joint table": (together.write(folder / "j") / "report.html").read_text(),
        "joint audit": joint,
        "frontier": dc.frontier(
            quasi, [dc.CART(min_leaf=5), dc.CART(min_leaf=50)], rng=seeded
        ).page(),
        "guards": evaluation.evaluate(people, {"k": dc.Restriction(k=3)}, asked).page().html(),
        "retrieval": retrieval_risk(built(folder, rows=30, schemes=("dpf",)), views=40)
        .page()
        .html(),
        "search": search_page(search_risk(words, rng=seeded), words).html(),
        "long table": LONG.html(),
    }


#: A table under whose lines one can search.
LONG = Page(
    "Long",
    [
        Section(
            "Cells",
            table=Pivot(
                ["town", "n"],
                labels=1,
                groups=[(["North", "20"], [[f"town {n}", "1"] for n in range(60)])],
            ),
        )
    ],
)


@pytest.mark.xdist_group("pages")
def test_a_long_table_is_searched_and_printed_whole(tmp_path):
    # The box that folds the group is unticked: what is found shows itself all the same.
    typed = (
        "<script>document.querySelector('tbody input').checked = false;"
        "const field = document.querySelector('input[type=search]'); field.value = 'TOWN 4';"
        "field.dispatchEvent(new Event('input')); document.title = [document.querySelector('output')."
        "textContent, ...[...document.querySelectorAll('tbody tr')].filter(line => "
        "line.checkVisibility()).map(line => line.cells[0].textContent.trim())].join(';')</script>"
    )
    place = tmp_path / "page.html"
    place.write_text(LONG.html().replace("</body>", f"{typed}</body>"), encoding="utf-8")
    title = re.search(r"<title>(.*?)</title>", browse("--dump-dom", place.as_uri()))
    assert title is not None
    count, *lines = title[1].split(";")
    assert count == "11 of 61 lines"
    assert lines == ["town 4", *(f"town {n}" for n in range(40, 50))]
    printed = LONG.html().replace("@media print", "@media all")
    place.write_text(printed.replace("</body>", f"{typed}</body>"), encoding="utf-8")
    title = re.search(r"<title>(.*?)</title>", browse("--dump-dom", place.as_uri()))
    assert title is not None
    assert len(title[1].split(";")) == 62, "a sheet of paper shows all lines"


def test_a_short_table_brings_no_script():
    short = Page("p", [Section("s", table=(["<table class='long"], [["<table class='long"]] * 9))])
    assert "<script" not in short.html()


@pytest.mark.xdist_group("pages")
def test_numbers_and_words_are_not_broken_on_paper(tmp_path):
    numbers = ["1,234,567.89"] * 9
    wide = Pivot(["town", *"abcdefghi"], labels=1, groups=[(["North", *numbers], [])])
    words = (["attack", "what it does"], [["membership", "a sentence of words " * 20]] * 2)
    long_word = (["file"], [["x" * 300]])
    page = Page(
        "p", [Section("n", table=wide), Section("w", table=words), Section("l", table=long_word)]
    )
    place = tmp_path / "page.html"
    place.write_text(page.html(), encoding="utf-8")
    assert printed_width(place, tmp_path) <= SHEET
    measured = (
        "<script>const lines = cell => { const text = document.createRange();"
        "text.selectNodeContents(cell); return text.getClientRects().length; };"
        "document.title = [...document.querySelectorAll('.pivot .n')].map(lines).join() + ';' + "
        "lines(document.querySelectorAll('table')[1].rows[1].cells[0])</script></body>"
    )
    text = page.html().replace("@media print", "@media all")
    place.write_text(text.replace("</body>", measured), encoding="utf-8")
    shown = browse(f"--window-size={SHEET},900", "--dump-dom", place.as_uri())
    title = re.search(r"<title>(.*?)</title>", shown)
    assert title is not None
    numbered, worded = title[1].split(";")
    assert (set(numbered.split(",")), worded) == ({"1"}, "1")


@pytest.mark.slow
def test_every_other_page_passes_axe_and_fits_a_sheet(tmp_path):
    (tmp_path / "made").mkdir()
    made = more_pages(tmp_path / "made")
    (tmp_path / "axe").mkdir()
    found = {}
    for name, page in made.items():
        (tmp_path / "page.html").write_text(page, encoding="utf-8")
        ((violations, passed),) = judged([page], tmp_path / "axe")
        assert passed > 5, name
        found[name] = (violations, printed_width(tmp_path / "page.html", tmp_path))
    assert {name: one for name, one in found.items() if one[0] or one[1] > SHEET} == {}


def test_a_heat_map_has_room_for_the_title_of_its_lines():
    from discreet.chart import grid

    cell = {("A", "x"): ("#b5413a", "withheld")}
    drawn = grid(cell, ["A"], ["x"], titles=("Wirtschaftsabschnitt", "y"), legend={})
    moved = float(re.search(r"translate\(([\d.]+)", drawn)[1])
    assert moved > 100, "the title ends 8 pixels left of the cells"


def test_only_the_total_of_a_flat_table_is_bold():
    flat = Pivot(["a", "n"], labels=1, groups=[(["x", "1"], []), (["Total", "1"], [])])
    page = Page("p", [Section("s", table=flat)]).html()
    assert page.count("<tbody class='total'>") == 1
    assert "<tbody class='total'><tr><th scope='row'>Total" in page


def test_a_heat_map_has_room_for_a_bold_title_of_wide_letters():
    from discreet.chart import grid

    title = "Unternehmen NUTS3"
    cells = {("DE1", "a"): ("#000000", "x")}
    drawn = grid(cells, ["a"], ["DE1"], titles=(title, ""), legend={"x": "#000000"})
    moved = re.search(r"translate\((\d+)", drawn)
    assert moved is not None
    assert float(moved.group(1)) >= 8 + 7.5 * len(title)
