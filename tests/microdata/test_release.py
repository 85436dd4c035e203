"""The release: identifiers gone, order broken, evidence beside it, nothing half-written."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import discreet as dc


@pytest.fixture
def people():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "name": [f"secret-{i}" for i in range(300)],
            "age": rng.integers(18, 90, 300),
            "town": rng.choice(["north", "south"], 300),
            "pay": np.arange(300) + 0.25,
        }
    )
    roles = {"name": "identifier", "age": "quasi", "town": "quasi", "pay": "confidential"}
    return dc.read(frame, roles=roles, name="people")


def test_what_is_written(people, tmp_path):
    safe = dc.mask(people, [dc.Microaggregation(["age", "town"], k=5), dc.Rounding("pay", 0.5)])
    folder = safe.write(tmp_path / "out")
    assert sorted(p.name for p in folder.iterdir()) == [
        "evidence.json",
        "people.csv",
        "report.html",
    ]
    rows = pd.read_csv(folder / "people.csv")
    assert list(rows.columns) == ["age", "town", "pay"]
    assert rows["pay"].tolist() != safe.frame["pay"].tolist()
    assert sorted(rows["pay"]) == sorted(safe.frame["pay"])
    joined = rows.sort_values("pay").reset_index(drop=True)
    pd.testing.assert_frame_equal(joined, safe.frame.sort_values("pay").reset_index(drop=True))
    evidence = json.loads((folder / "evidence.json").read_text())
    assert evidence["kind"] == "microdata"
    assert evidence["settings"]["methods"][0]["k"] == 5
    assert evidence["settings"]["identifiers removed"] == ["name"]
    assert evidence["verdict"].startswith("safe under k-anonymity with k = ")
    assert evidence["randomness"] == "none"
    for file in folder.iterdir():
        assert "secret-" not in file.read_text()
    assert "<svg" in (folder / "report.html").read_text()


def test_the_frame_keeps_the_order_of_the_input(people):
    safe = dc.mask(people, dc.Rounding("age", 10))
    assert safe.frame["pay"].tolist() == people.frame["pay"].tolist()
    assert "name" not in safe.frame.columns


def test_the_page_and_the_evidence_tell_no_figure_of_the_original(people, tmp_path):
    safe = dc.mask(people, dc.TopCoding("pay", 100))
    folder = safe.write(tmp_path / "out")
    mean = people.frame["pay"].mean()
    for file in ("report.html", "evidence.json"):
        text = (folder / file).read_text()
        assert f"{mean:.4g}" not in text
        assert str(people.frame["pay"].max()) not in text


@pytest.mark.parametrize(
    "method", [dc.RankSwapping("pay"), dc.Rounding("pay", unbiased=True)], ids=lambda m: m.name
)
def test_a_seeded_release_is_refused_and_leaves_nothing(people, tmp_path, method):
    safe = dc.mask(people, method, rng=dc.Randomness.seeded(1))
    with pytest.raises(dc.RefusedError) as caught:
        safe.write(tmp_path / "out")
    assert caught.value.code == "seeded-randomness"
    assert list(tmp_path.iterdir()) == []
    assert safe.evidence().randomness == "seeded"


def test_parquet_for_other_libraries(people, tmp_path):
    rows = people.arrow(["age", "pay"])
    safe = dc.mask(
        dc.read(rows, roles={"age": "quasi", "pay": "confidential"}, name="people"),
        dc.Rounding("age", 10),
    )
    folder = safe.write(tmp_path / "out")
    assert pq.read_table(folder / "people.parquet").column_names == ["age", "pay"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_files_go_out_in_the_format_they_came_in(people, tmp_path, suffix):
    source = people.write(tmp_path / f"people.{suffix}")
    roles = {"name": "identifier", "age": "quasi", "town": "quasi", "pay": "confidential"}
    read = dc.read(source, roles=roles)
    folder = dc.mask(read, dc.Rounding("age", 10)).write(tmp_path / "out")
    assert (folder / f"people.{suffix}").exists()
    assert len(dc.read(folder / f"people.{suffix}")) == 300


def test_the_verdict_says_what_is_wrong(people):
    raw = dc.mask(people, dc.Rounding("pay", 10))
    assert raw.verdict.startswith("not k-anonymous: ")
    assert "linked to their own record" in raw.verdict


def test_the_last_step_is_checked_before_the_first_is_done(people):
    with pytest.raises(dc.InputError, match="'town' holds text"):
        dc.mask(people, [dc.Rounding("age"), dc.Rounding("town")])
    with pytest.raises(dc.InputError) as caught:
        dc.mask(people, ["top-coding"])
    assert caught.value.code == "malformed-member"


def test_guessed_identifiers_that_are_masked_stay_and_given_ones_go():
    frame = pd.DataFrame({"x": range(50), "y": [float(i % 7) for i in range(50)]})
    guessed = dc.read(frame).replace(roles={"y": "other"})
    assert "x" in dc.mask(guessed, dc.Rounding("x", 10)).frame.columns
    given = dc.read(frame, roles={"x": "identifier", "y": "other"})
    assert "x" not in dc.mask(given, dc.Rounding("x", 10)).frame.columns


def test_nothing_left_is_said():
    people = dc.read(pd.DataFrame({"name": ["a", "b"]}), roles={"name": "identifier"})
    with pytest.raises(dc.InputError) as caught:
        dc.mask(people, [])
    assert caught.value.code == "nothing-to-release"
