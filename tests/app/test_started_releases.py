"""`discreet init` and `discreet release` on one register, in the forms in which people have it.

The 300 stays of 150 patients are drawn, so that no column repeats in step with another. What is
released is judged here by counting the patients who fit each released line, with other code.
"""

from __future__ import annotations

import csv
import gzip
import io
import random
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from discreet.app.policy.run import run_policy
from discreet.app.policy.starting import starting_policy
from discreet.data.source import Source
from tests.data.awkward_files import ods, workbook, zipped

HEADER = ("Patient-Nr", "age", "region", "icd", "cost", "doctor", "remark")


def register() -> list[tuple[int, int, str, str, float, str, str]]:
    draw = random.Random(8)
    people = [
        (700_000 + 37 * n, draw.randint(20, 79), draw.choice(["north", "south", "east"]))
        for n in range(150)
    ]
    return [
        (
            *draw.choice(people),
            draw.choice(["I25.1", "J18.9", "C50.4", "E11.9"]),
            draw.randint(10_000, 999_999) / 100,
            draw.choice(["Dr. Krause", "Dr. Öztürk", "Prof. Lehmann"]),
            f"came on day {number}, called the daughter of bed {draw.randint(1, 90)}",
        )
        for number in range(300)
    ]


ROWS = register()


def written(
    *,
    delimiter: str = ",",
    decimal: str = ".",
    mark: str = "",
    end: str = "\n",
    header: bool = True,
) -> str:
    """Return the register as a CSV text."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    if header:
        writer.writerow(HEADER)
    for row in ROWS:
        cost = f"{row[4]:,.2f}" if mark else f"{row[4]:.2f}"
        spelt = cost.replace(",", "_").replace(".", decimal).replace("_", mark)
        writer.writerow([*row[:4], spelt, *row[5:]])
    return text.getvalue()


def file(name: str, content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


def sheet(**more: object) -> Callable[[Path], Path]:
    rows = [["Stays of 2024"], [], list(HEADER), *map(list, ROWS), [], ["Source: three hospitals"]]
    return workbook({"About": [["Contact"]], "Stays": rows})


def framed(suffix: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        frame = pd.DataFrame(ROWS, columns=list(HEADER))
        place = folder / f"stays{suffix}"
        if suffix == ".parquet":
            frame.to_parquet(place)
            return place
        frame = frame.rename(columns={"Patient-Nr": "patient_nr"})
        if suffix == ".dta":
            frame.to_stata(place, write_index=False)
        else:
            import pyreadstat

            pyreadstat.write_sav(frame, str(place))
        return place

    return make


def several(folder: Path) -> Path:
    head, *lines = written(delimiter=";").splitlines()
    (folder / "parts").mkdir()
    for month in range(3):
        text = "\n".join([head, *lines[month::3]]) + "\n"
        (folder / "parts" / f"month{month}.csv").write_text(text, encoding="utf-8")
    return folder / "parts"


_TITLE = "Stays of 2024\nall three hospitals\n\n"
FORMS: dict[str, Callable[[Path], Path]] = {
    "commas": file("a.csv", written().encode()),
    "semicolons, decimal commas, Latin": file(
        "a.csv", written(delimiter=";", decimal=",").encode("cp1252")
    ),
    "Western Europe, thousands": file(
        "a.csv", written(delimiter=";", decimal=",", mark=".").encode("utf-8-sig")
    ),
    "American thousands": file("a.csv", written(delimiter="|", mark=",").encode()),
    "tabs, UTF-16, Windows": file("a.txt", written(delimiter="\t", end="\r\n").encode("utf-16")),
    "title above": file("a.csv", (_TITLE + written(delimiter=";")).encode()),
    "notes below": file("a.csv", (written(delimiter=";") + "\nSource: the hospitals\n").encode()),
    "no names of columns": file("a.csv", written(header=False).encode()),
    "gzip": file("a.csv.gz", gzip.compress(written().encode())),
    "zip": file("a.zip", zipped({"stays.csv": written().encode()})),
    "a folder of months": several,
    "workbook with title, notes, cover": sheet(),
    "OpenDocument": file("a.ods", ods([HEADER, *ROWS])),
    "Parquet": framed(".parquet"),
    "Stata": framed(".dta"),
    "SPSS": framed(".sav"),
}


def fits(value: str, released: str) -> bool:
    """Whether a recorded value may stand behind a released one."""
    if released in ("Total", "Other", "*", value):
        return True
    low, found, high = released.strip("[]()").partition("-")
    if found and low.isdigit():
        return int(low) <= int(value) <= int(high)
    return released.endswith("*") and value.startswith(released.rstrip("*"))


def judged(folder: Path) -> int:
    """Count in the released file the fewest patients behind a line; nothing else may be in it."""
    (place,) = (f for f in (folder / "out/records").iterdir() if f.suffix in (".csv", ".parquet"))
    is_text = place.suffix == ".csv"
    text = (
        place.read_text(encoding="utf-8") if is_text else pd.read_parquet(place).to_csv(index=False)
    )
    lines = list(csv.DictReader(io.StringIO(text)))
    names = list(lines[0])
    assert len(lines) >= 250
    places = {name: HEADER.index(name) for name in names if name in HEADER}
    if not places:  # the columns have numbers for names
        places = {name: int(name.removeprefix("column_")) - 1 for name in names}
    assert set(places.values()) <= {1, 2, 3, 4}, "patients, doctors and remarks do not leave"
    for secret in ("Krause", "daughter", *(str(row[0]) for row in ROWS)):
        assert secret not in text
    known = [name for name, place in places.items() if place in (1, 2)]
    classes: dict[tuple[str, ...], set[str]] = {}
    illness = [name for name, place in places.items() if place == 3]
    for line in lines:
        seen = classes.setdefault(tuple(line[name] for name in known), set())
        seen.update(line[name] for name in illness)
    if illness:
        assert min(map(len, classes.values())) >= 2
    return min(
        len(
            {
                row[0]
                for row in ROWS
                if all(fits(str(row[places[n]]), v) for n, v in zip(known, released, strict=True))
            }
        )
        for released in classes
    )


def started(form: str, folder: Path) -> int:
    path = FORMS[form](folder)
    policy = folder / "policy.yaml"
    start = starting_policy(Source(str(path)), policy)
    assert start.questions == ()
    text = start.policy.replace("about:\n", "about:\n  pdf: false\n")
    if 'unit: "?"' in text:  # asked of a file that names no column; what is asked can be answered
        assert "do records belong to column_1?" in text
        text = text.replace('unit: "?"', 'unit: "column_1"')
    policy.write_text(text, encoding="utf-8")
    done = run_policy(policy, folder / "out").done
    assert done[0].verdict.startswith("safe under")
    assert "counted as one person" not in done[0].verdict, "patients have several stays"
    return judged(folder)


@pytest.mark.parametrize("form", ["semicolons, decimal commas, Latin", "no names of columns"])
def test_a_register_is_released_safely(form, tmp_path):
    assert started(form, tmp_path) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_register_is_released_safely_in_every_form(form, tmp_path):
    assert started(form, tmp_path) >= 5


def test_the_judge_finds_what_is_not_protected(tmp_path):
    (tmp_path / "out/records").mkdir(parents=True)
    place = tmp_path / "out/records/a.csv"
    bare = ["age,region", *(f"{row[1]},{row[2]}" for row in ROWS)]
    place.write_text("\n".join(bare) + "\n", encoding="utf-8")
    assert judged(tmp_path) < 5
    place.write_text("\n".join([*bare, f"{ROWS[0][0]},north"]) + "\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        judged(tmp_path)
