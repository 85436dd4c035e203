"""Tables as people lay them out, and what was lost in words."""

import re

import pandas as pd

import discreet as dc
from discreet.page import Page, Section
from discreet.tables import layout
from discreet.tables.layout import pivot, published_text
from discreet.tables.loss_in_words import loss_in_words
from discreet.tables.page import release_page

FIRMS = pd.DataFrame(
    {
        "sector": (["A1", "A2", "B1"] * 40)[:120],
        "size": (["250+", "50-249", "0-9", "10-49"] * 30)[:120],
        "region": ["north"] * 60 + ["south"] * 60,
        "turnover": [10.0 + n % 7 + 0.5 * (n % 2) for n in range(120)],
    }
)
SECTORS = dc.Hierarchy.from_pairs(
    [("Total", ""), ("A", "Total"), ("A1", "A"), ("A2", "A"), ("B", "Total"), ("B1", "B")]
)


def released(by, **settings):
    data = dc.read(FIRMS, roles=dict.fromkeys(["sector", "size", "region"], "quasi"), **settings)
    table = dc.tabulate(data, by=by, measure="turnover")
    return table.protect(rules=[dc.MinimumFrequency(3)], method=dc.Suppression())


def test_classes_stand_in_their_order():
    assert pivot(released(["region", "size"])).lines()[0][0] == "0-9"
    lines = [line[0] for line in pivot(released(["region", "size"])).lines()]
    assert lines == ["0-9", "10-49", "50-249", "250+", "Total"]


def test_parts_fold_under_their_sub_total():
    made = pivot(released(["sector"], hierarchies={"sector": SECTORS}))
    heads = [(head[0], [part[0].strip() for part in parts]) for head, parts in made.groups]
    assert heads == [("A", ["A1", "A2"]), ("B", ["B1"]), ("Total", [])]


def test_every_cell_of_three_attributes_is_there_once():
    release = released(["sector", "size", "region"])
    made = pivot(release)
    shown = [cell for line in made.lines() for cell in line[made.labels :] if cell]
    assert len(shown) == len(release.table)
    page = Page("t", [Section("s", table=made)]).html()
    assert page.count("<td class='n'>") == len(release.table)
    assert "<script" not in page


def test_what_does_not_fit_is_counted(monkeypatch):
    release = released(["sector", "size", "region"])
    monkeypatch.setattr(layout, "_LINES", 4)
    text = published_text(release)
    left = len(pivot(release).lines()) - 4
    assert f"… {left} lines more" in text
    monkeypatch.setattr(layout, "_CELLS", 10)
    assert f"The first 10 of {len(release.table)} cells are shown" in release_page(release).html()


def test_the_loss_in_words_is_what_the_published_cells_say():
    # Two lone firms, so that something is withheld whatever pattern is drawn.
    rows = FIRMS.drop(FIRMS[(FIRMS["sector"] == "A1") & (FIRMS["region"] == "north")].index[2:])
    data = dc.read(rows, roles={"sector": "quasi", "region": "quasi"})
    table = dc.tabulate(data, by=["sector", "region"], measure="turnover")
    release = table.protect(rules=[dc.MinimumFrequency(3)], method=dc.Suppression())
    cells = release.published
    finest = cells[(cells["sector"] != "Total") & (cells["region"] != "Total")]
    total = cells[(cells["sector"] == "Total") & (cells["region"] == "Total")]["value"].iloc[0]
    hidden = total - finest["value"].sum()
    told = " ".join(loss_in_words(release, "kEUR"))
    assert f"{int(cells['value'].isna().sum())} of 12 cells" in told
    assert f"they hold {hidden:,.0f} of {total:,.0f} kEUR of turnover" in told
    assert re.search(r"Without sector, \d of 3 cells", told)
