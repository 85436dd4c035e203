"""A custodian's file: refused with a list to fill in, then released with what was decided alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.app.cli.main import build
from discreet.errors import InputError

SIZE = 240
DECIDED = {
    "patient": "identifier",
    "full_name": "identifier",
    "notes": "identifier",
    "lat": "identifier",
    "lon": "identifier",
    "born": "identifier",
    "admitted": "identifier",
    "postcode": "quasi",
    "sex": "quasi",
    "icd": "confidential",
    "ward": "other",
}


def stays() -> pd.DataFrame:
    """Several stays per patient, with everything that a hospital's export holds."""
    rng = np.random.default_rng(7)
    patient = rng.integers(0, SIZE // 2, SIZE)
    home = rng.integers(0, 6, SIZE // 2)[patient]
    day = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, SIZE), unit="D")
    return pd.DataFrame(
        {
            "patient": [f"P{p:05d}" for p in patient],
            "full_name": [f"Zaphira Quillfeather{p}" for p in patient],
            "born": [f"{p % 28 + 1:02d}/{p % 12 + 1:02d}/{1930 + p % 70}" for p in patient],
            "postcode": [f"0{8000 + h}" for h in home],
            "sex": np.where(patient % 2, "f", "m"),
            "lat": 41 + rng.random(SIZE),
            "lon": 2 + rng.random(SIZE),
            "admitted": day.strftime("%Y-%m-%d"),
            "icd": rng.choice(["I10", "E11.9", "J45", "C50.1"], SIZE),
            "notes": [f"Mrs Quillfeather{p} was told to call +34 600 {p:03d} 111" for p in patient],
            "ward": rng.choice(["A", "B"], SIZE),
        }
    )


def test_the_first_attempt_is_refused_with_a_list_that_works(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    stays().to_csv(tmp_path / "stays.csv", index=False)
    for roles in (None, {"postcode": "quasi", "sex": "quasi", "icd": "confidential"}):
        data = dc.read(tmp_path / "stays.csv", roles=roles)
        with pytest.raises(InputError) as error:
            dc.anonymize(data, dc.KAnonymity(5), method=dc.Mondrian())
        assert error.value.code == "undecided-columns"
        assert "Quillfeather" not in str(error.value)
    listed = error.value.facts["suggested"]
    assert listed["notes"] == "identifier"
    assert listed["lat"] == listed["lon"] == listed["born"] == "quasi"
    command = ["microdata", "anonymize", str(tmp_path / "stays.csv"), "--model", "k-anonymity=5"]
    result = CliRunner().invoke(build(), [*command, "-o", str(tmp_path / "out")])
    assert isinstance(result.exception, InputError)
    assert "--role ward=" in str(result.exception.hint)
    assert not (tmp_path / "out").exists()


def test_saying_other_for_everything_is_not_enough(tmp_path: Path) -> None:
    roles = {"postcode": "quasi", "sex": "quasi", "icd": "confidential"}
    data = dc.read(stays(), roles=roles, rest="other")
    with pytest.raises(InputError) as error:
        dc.anonymize(data, dc.KAnonymity(5), method=dc.Mondrian())
    assert error.value.code == "identifying-values"


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_after_deciding_the_release_holds_nothing_else(tmp_path: Path, format: str) -> None:
    frame = stays()
    data = dc.read(frame, roles=DECIDED, unit="patient", name="stays")
    models = [dc.KAnonymity(5), dc.LDiversity("icd", 2)]
    safe = dc.anonymize(data, models, method=dc.Mondrian())
    import dataclasses

    folder = dataclasses.replace(safe, format=format).write(tmp_path / "out")
    released: Any = (
        pd.read_csv(folder / "stays.csv")
        if format == "csv"
        else pd.read_parquet(folder / "stays.parquet")
    )
    assert list(released.columns) == ["postcode", "sex", "icd", "ward"]
    hidden = {
        str(v) for name in ("patient", "full_name", "notes", "lat", "lon") for v in frame[name]
    }
    for file in folder.iterdir():
        content = file.read_bytes()
        assert b"Quillfeather" not in content
        assert not any(value.encode() in content for value in hidden)
    verdict = json.loads((folder / "evidence.json").read_text())["verdict"]
    assert "every class has at least 5 people" in verdict
    assert "ward leaves as it is" in verdict
    # Brute force over people: the release keeps the input's rows, in another order.
    rows = safe.dataset.numbered().arrow(["postcode", "sex", "__row"]).to_pylist()
    owners: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        owners.setdefault((row["postcode"], row["sex"]), set()).add(frame["patient"][row["__row"]])
    assert min(map(len, owners.values())) >= 5
