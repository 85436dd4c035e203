"""Generated files and demands, as bad as they come, and a judge of what is written.

A seed gives a frame of columns of every type, roles, a job with its methods and models found by
looking, and a format. What comes out is an error of ours or a folder. The folder is judged by the
verifier, which also had its say at publication, and by looking at every pair of records.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import functools
import json
import tempfile
import traceback
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv, parquet

import discreet as dc
from discreet.data.job import ReleaseJob
from discreet.microdata.synthesizers._private import PrivateSynthesizer
from discreet.registry import members

TEXTS = [
    "a",
    "b",
    "é",
    "e\u0301",
    "",
    None,
    "nan",
    "01",
    "1",
    'q"u,o',
    "x\ny",
    "*",
    " a",
    "Å",
    "\u212b",
]
FLOATS = [0.0, -0.0, float("nan"), None, 1.5, -2.25, 3.0, 1e-300, 1e17]
NOTES = ["seen by Dr Who on the ward", "call +49 30 1234567 at night", "no notes at all here today"]
MARK = "Xanthippe"


def ints(rng: np.random.Generator, size: int) -> Any:
    return rng.integers(0, 5, size)


def floats(rng: np.random.Generator, size: int) -> Any:
    pool = [FLOATS[place] for place in rng.choice(len(FLOATS), 4)]
    return pd.Series([pool[p] for p in rng.integers(0, 4, size)], dtype="float64")


def texts(rng: np.random.Generator, size: int) -> Any:
    pool = [TEXTS[place] for place in rng.choice(len(TEXTS), 4)]
    return pd.Series([pool[p] for p in rng.integers(0, 4, size)], dtype=object)


def categories(rng: np.random.Generator, size: int) -> Any:
    values = rng.choice(["u", "v", "w"], size)
    return pd.Series(pd.Categorical(values, categories=["u", "v", "w", "unused"]))


def flags(rng: np.random.Generator, size: int) -> Any:
    return pd.Series([[True, False, None][p] for p in rng.integers(0, 3, size)], dtype="boolean")


def days(rng: np.random.Generator, size: int) -> Any:
    first = datetime.date(2020, 2, 27)
    return pd.Series(
        [first + datetime.timedelta(days=int(d)) for d in rng.integers(0, 4, size)], dtype=object
    )


def moments(rng: np.random.Generator, size: int) -> Any:
    return pd.Timestamp("2020-02-27") + pd.to_timedelta(rng.integers(0, 3, size), unit="h")


def decimals(rng: np.random.Generator, size: int) -> Any:
    return pd.Series([decimal.Decimal(int(d)) / 4 for d in rng.integers(0, 5, size)], dtype=object)


def mixed(rng: np.random.Generator, size: int) -> Any:
    return pd.Series([[1, "1", None, 2.0][p] for p in rng.integers(0, 4, size)], dtype=object)


def spans(rng: np.random.Generator, size: int) -> Any:
    return pd.to_timedelta(rng.integers(0, 3, size), unit="D")


def notes(rng: np.random.Generator, size: int) -> Any:
    return pd.Series([NOTES[p] for p in rng.integers(0, 3, size)], dtype=object)


def large(rng: np.random.Generator, size: int) -> Any:
    return rng.integers(0, 3, size) + 2**53


COMMON = (ints, floats, texts, categories)
RARE = (flags, days, moments, decimals, mixed, spans, notes, large)
KINDS = (*COMMON * 10, *(flags, days, moments, decimals, large) * 2, *RARE)
NAMES = ("key", "town", "count", "weight", "Größe", "a b", "group", "records")


@dataclasses.dataclass(frozen=True)
class Case:
    """What a seed stands for."""

    frame: pd.DataFrame
    reading: dict[str, Any]
    job: Any


def case(seed: int) -> Case:
    """Return a frame, what is said of it, and what is demanded."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(4, 40))
    chosen = list(rng.permutation(len(NAMES)))
    columns: dict[str, Any] = {"name": [f"{MARK} {n}" for n in range(size)]}
    roles: dict[str, str] = {"name": "identifier"}

    def add(role: str, kinds: tuple[Any, ...] = KINDS) -> str:
        name = NAMES[chosen.pop()]
        columns[name] = kinds[int(rng.integers(len(kinds)))](rng, size)
        roles[name] = role
        return name

    keys = [add("quasi") for _ in range(int(rng.integers(1, 4)))]
    secret = [add("confidential") for _ in range(int(rng.integers(1, 3)))]
    others = [add("other") for _ in range(int(rng.integers(0, 2)))]
    reading: dict[str, Any] = {"roles": roles, "name": "people"}
    if rng.random() < 0.5:
        columns["who"] = rng.integers(0, max(2, int(size * rng.choice([0.3, 0.8, 3]))), size)
        reading["unit"] = "who"
    if rng.random() < 0.3:
        columns["w"] = rng.choice([1.0, 2.5, 4.0], size)
        roles["w"] = "other"
        reading["weight"] = "w"
    if rng.random() < 0.1:
        roles.pop(keys[-1])  # a column that nobody decided on
    reading["vouch"] = [name for name in (*others, *keys) if rng.random() < 0.8]
    frame = pd.DataFrame(columns)
    reading["hierarchies"] = {key: tree for key in keys if (tree := hierarchy(frame[key], rng))}
    demand = job(rng, frame, keys, secret)
    if isinstance(getattr(demand, "method", None), PrivateSynthesizer) or rng.random() < 0.2:
        reading["domains"] = {
            name: listed
            for name in roles
            if name not in reading["hierarchies"] and (listed := domain(frame[name]))
        }
    return Case(frame, reading, demand)


def domain(values: pd.Series) -> Any:
    """Return public values of a column: limits of numbers, a list of anything else."""
    if pd.api.types.is_float_dtype(values) or pd.api.types.is_integer_dtype(values):
        return {"bounds": [-10, 2e17]}
    known = {unicodedata.normalize("NFC", v) for v in values if isinstance(v, str)}
    return [*sorted(known), None] if len(known) == values.dropna().nunique() else None


def hierarchy(values: pd.Series, rng: np.random.Generator) -> Any:
    """Return a hierarchy of two levels over the values, where they are texts or whole numbers."""
    texts = {unicodedata.normalize("NFC", str(value)) for value in values if pd.notna(value)}
    known = sorted(texts)
    if rng.random() < 0.2 or not known or len({*known, "All", "G0", "G1"}) < len(known) + 3:
        return None
    groups: dict[str, list[str]] = {"G0": [], "G1": []}
    for value in known:
        groups[f"G{int(rng.integers(2))}"].append(value)
    try:
        return dc.Hierarchy.from_levels(
            {"All": {name: some for name, some in groups.items() if some}}
        )
    except dc.DiscreetError:
        return None


def job(rng: np.random.Generator, frame: pd.DataFrame, keys: list[str], secret: list[str]) -> Any:
    """Return a demand of a job that releases records, chosen among all there are."""
    release = release_jobs()
    kind = release[int(rng.choice(len(release), p=_odds(release)))]
    made = kind(**_given(kind, rng, frame, keys, secret))
    if "format" in {item.name for item in kind.parameters()}:
        made = dataclasses.replace(made, format=str(rng.choice(["csv", "parquet", "arrow"])))
    return made


@functools.cache
def all_of(family: str) -> tuple[Any, ...]:
    """Return the members of a family, looked for once."""
    return tuple(members(family).values())


def release_jobs() -> list[Any]:
    """Return the jobs that are tried."""
    return [
        one
        for one in all_of("job")
        if issubclass(one, ReleaseJob) and one.__module__.startswith("discreet.microdata")
    ]


def _odds(release: list[Any]) -> Any:
    # What is measured of masked and of drawn records takes long, so there are fewer of them.
    slow = {"methods", "sets"}
    odds = np.array([0.15 if slow & {i.name for i in one.parameters()} else 1.0 for one in release])
    return odds / odds.sum()


def _given(
    kind: Any, rng: np.random.Generator, frame: pd.DataFrame, keys: list[str], secret: list[str]
) -> dict[str, Any]:
    offered = {
        "column": secret[0],
        "columns": tuple(keys[:1]),
        "identifiers": ("name",),
        "household": keys[0],
        "bounds": {keys[0]: (0.0, 10.0)},
        "confidential": tuple(secret),
        "missing": tuple(keys[:1]),
        "epsilon": 5.0,
        "delta": 1e-6,
        "min_leaf": 2,
    }

    def some(family: str) -> Any:
        choice = all_of(family)
        for _ in range(20):
            member = choice[int(rng.integers(len(choice)))]
            try:
                examples = member.examples(**offered)
            except (dc.DiscreetError, TypeError):
                continue
            return examples[int(rng.integers(len(examples)))]
        raise AssertionError(f"no {family} can be tried")

    asked = {item.name for item in kind.parameters()}
    k = int(rng.integers(2, 5))
    drawn: dict[str, Any] = {
        "models": (dc.KAnonymity(k), *([some("model")] if rng.random() < 0.5 else [])),
        "method": some("synthesizer" if "sets" in asked else "anonymization"),
        "sets": int(rng.integers(1, 3)),
        "records": int(rng.integers(1, 60)) if rng.random() < 0.5 else None,
        "methods": (some("masking"),),
        "below": 0.9,
        "sensitive": secret[0],
        "k": k,
        "e": float(rng.choice([0, 0, 1])),
        "partition": some("partition"),
        "cap": bool(rng.random() < 0.2),
    }
    return {name: drawn[name] for name in asked if name in drawn}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a case: released, refused with a code, or what went wrong."""

    job: str
    result: str
    wrong: str | None = None


#: Errors by which a release finds out that it was about to break a promise: a fault all the same.
FAULTS = ("promise-broken", "model-not-kept", "internal")


def tried(seed: int) -> Outcome:
    """Run one case and judge what it wrote."""
    made = case(seed)
    name = type(made.job).name
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        try:
            data = dc.read(made.frame, **made.reading)
            release = made.job.run(data)
            made.job.write(release, out)
        except dc.DiscreetError as error:
            if error.code in FAULTS:
                return Outcome(name, error.code, f"{made.job}: {error}")
            left = [] if not Path(folder).exists() else list(Path(folder).iterdir())
            return Outcome(name, error.code, "something was written" if left else None)
        except Exception:
            return Outcome(name, "crash", f"{made.job}: {traceback.format_exc(limit=-6)}")
        return Outcome(name, "released", judged(out, release, made))


def judged(out: Path, release: Any, made: Case) -> str | None:
    """Return what is wrong with a written folder."""
    found = dc.verify(out)
    if not found.holds:
        return f"{made.job}: {found}"
    for file in out.rglob("*"):
        if file.is_file() and MARK.encode() in file.read_bytes():
            return f"{made.job}: {file.name} names somebody"
    decided = {*made.reading["roles"]} - {made.reading.get("unit")}
    if not any(isinstance(m, dc.Pseudonyms) for m in getattr(made.job, "methods", ())):
        decided -= {"name"}
    for promise in json.loads((out / "evidence.json").read_text())["promises"]:
        more = {*rows_of(out / promise["file"]).column_names} - decided - {promise.get("group")}
        wrong = (_pairs if promise["kind"] == "records" else _groups)(out, promise)
        if more or wrong:
            return f"{made.job}: {wrong or f'{sorted(more)} left undecided'}"
    return None


def rows_of(file: Path) -> pa.Table:
    """Read a file by the libraries that others would use."""
    if file.suffix == ".csv":
        options = csv.ConvertOptions(
            strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
        )
        names = file.read_text(encoding="utf-8").split("\n", 1)[0]
        kinds = {name.strip('"'): pa.string() for name in names.split(",")}
        parse = csv.ParseOptions(newlines_in_values=True)
        options.column_types = kinds
        return csv.read_csv(file, parse_options=parse, convert_options=options)
    return (
        parquet.read_table(file) if file.suffix == ".parquet" else pa.ipc.open_file(file).read_all()
    )


def _pairs(out: Path, promise: dict[str, Any]) -> str | None:
    """Compare every record with every other: at least k look alike."""
    table = rows_of(out / promise["file"])
    least = max(
        [m["k"] for m in promise.get("models", ()) if m["name"] == "k-anonymity"], default=1
    )
    for keys in promise.get("keys", ()):
        rows = [
            tuple(map(repr, row))
            for row in zip(*(table.column(k).to_pylist() for k in keys), strict=True)
        ]
        free = promise.get("reading") == "wildcard"
        for one in rows:
            if promise.get("starred") and set(one) == {"'*'"}:
                continue
            alike = sum(
                all(a == b or (free and "None" in (a, b)) for a, b in zip(one, two, strict=True))
                for two in rows
            )
            if alike < least:
                return f"a record looks like {alike - 1} others, not {least - 1}"
    return None


def _groups(out: Path, promise: dict[str, Any]) -> str | None:
    table = rows_of(out / promise["file"])
    groups = table.column(promise["group"]).to_pylist()
    values = table.column(promise["sensitive"]).to_pylist()
    for group in set(groups):
        own = Counter(v for g, v in zip(groups, values, strict=True) if g == group)
        if len(own) < promise["k"]:
            return f"a group has {len(own)} values"
        if promise["cap"] and max(own.values()) * promise["k"] > own.total():
            return "a value makes up more than its share of a group"
        if not promise["category"] and float(max(own)) - float(min(own)) < promise["e"]:
            return "a group is narrower than promised"
    return None
