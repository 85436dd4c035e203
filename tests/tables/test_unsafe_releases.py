"""What is not safe is not written, unless the curator says so, and then every page says so."""

import json

import pandas as pd
import pytest

import discreet as dc

RULES = [dc.MinimumFrequency(3)]


def table():
    cells = pd.DataFrame({"s": ["Total", "a", "b", "c"], "n": [40, 2, 18, 20]})
    return dc.Table.from_cells(cells, ["s"], "n", count="n", statistic="count")


def test_an_unsafe_release_is_refused_and_nothing_is_written(tmp_path):
    release = table().protect(RULES, dc.ConventionalRounding(5))
    assert release.is_safe is False
    with pytest.raises(dc.RefusedError) as caught:
        release.write(tmp_path / "out")
    assert caught.value.code == "unsafe-release"
    assert "unsafe=True" in caught.value.hint
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("accept", ["when written", "when made"])
def test_an_accepted_one_says_so_on_every_page(tmp_path, accept):
    made = accept == "when made"
    release = table().protect(RULES, dc.ConventionalRounding(5), unsafe=made)
    folder = release.write(tmp_path / "out", unsafe=not made)
    assert "This release is not safe" in (folder / "report.html").read_text()
    evidence = json.loads((folder / "evidence.json").read_text())
    assert evidence["risk"]["safe"] is False
    assert evidence["verdict"].startswith("not safe")
    legend = pd.read_excel(folder / "cells.xlsx", sheet_name="legend", engine="openpyxl")
    assert legend.meaning.str.contains("not safe").any()
    release.write_curator(tmp_path / "curator.html")
    assert "This release is not safe" in (tmp_path / "curator.html").read_text()


def test_linked_tables_are_refused_together_and_say_so_on_each_page(tmp_path):
    frame = pd.DataFrame({"g": list("aabbbbcccccc"), "h": list("xyxyxyxyxyxy")})
    tables = dc.tabulate(dc.read(frame), by=[["g", "h"], ["h"]])
    release = dc.protect(tables, RULES, dc.ConventionalRounding(5))
    with pytest.raises(dc.RefusedError):
        release.write(tmp_path / "out")
    folder = release.write(tmp_path / "out", unsafe=True)
    pages = list(folder.glob("*/report.html"))
    assert len(pages) == 2
    assert all("This release is not safe" in page.read_text() for page in pages)


def test_safe_and_unjudged_releases_are_written(tmp_path):
    safe = table().protect(RULES, dc.RandomRounding(10))
    assert safe.is_safe
    safe.write(tmp_path / "safe")
    assert "This release is not safe" not in (tmp_path / "safe" / "report.html").read_text()
    assert table().protect(method=dc.ConventionalRounding(5)).is_safe is None


def test_attributes_with_like_names_have_files_of_their_own(tmp_path):
    frame = pd.DataFrame(
        {"a b": list("xxyyxxyy"), "a_b": list("ppppqqqq"), "a_b_2": list("uvuvuvuv")}
    )
    data = dc.read(frame)
    nested = [dc.Hierarchy.from_pairs([("Total", ""), ("p", "Total"), ("q", "Total")])] * 2
    data = data.replace(hierarchies={"a_b": nested})
    release = dc.tabulate(data, by=["a b", "a_b", "a_b_2"]).protect(method=dc.RandomRounding(5))
    folder = release.write(tmp_path / "out")
    written = sorted(path.name for path in folder.glob("hierarchy_*"))
    assert len(written) == 4
    codes = {path.read_text().splitlines()[-1].split(",")[0] for path in folder.glob("hierarchy_*")}
    assert codes == {"y", "q", "v"}
    # Read again, each attribute finds its own.
    assert len(dc.audit_published(folder / "cells.csv", within=5).intervals) > 0
