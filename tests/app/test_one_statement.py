"""Command line, policy and Python give the same bytes for every job and member, from one statement."""

from __future__ import annotations

from typing import get_origin

import opendp.mod
import pytest

import discreet as dc
from discreet.randomness import Randomness
from discreet.registry import members
from tests.app import statements
from tests.laws.job import spelled, tried

RULE = {"minimum-frequency": {"n": 2}}
#: How jobs are declared here; one that is not named is tried with its own examples.
PLAIN = {
    "table": {"by": ["sex", "region"], "rules": [RULE], "method": "random-rounding"},
    "mask": {"methods": [{"rank-swapping": {"columns": ["pay"], "p": 20}}]},
    "strengthen": {"methods": [{"microaggregation": {"columns": ["age"], "k": 2}}], "below": 0.9},
    "anonymize": {"models": [{"k-anonymity": {"k": 2}}]},
    "permutation": {"sensitive": "pay", "k": 3, "cap": True, "quasi": ["age"]},
    "compare": {"by": ["sex", "region"], "rules": [RULE], "methods": ["random-rounding"]},
    "explore": {"methods": [{"microaggregation": {"columns": ["age"], "k": 3}}]},
    "risk": {"keys": ["age", "sex"]},
    "utility": {"released": "people.csv"},
    "synthesize": {"method": {"cart": {"min_leaf": 5}}},
    "judge": {"original": "people.csv"},
    "check": {"models": [{"k-anonymity": {"k": 2}}]},
    "describe": {},
    "evaluate": {"guards": [{"restriction": {"k": 3}}], "questions": 3},
    "permutation-comparison": {"sensitive": "pay", "column": "age", "k": 3, "queries": 5,
                               "sweep": False},
}  # fmt: skip
#: Other declarations of a job, tried where a member cannot be run in the one above.
OTHERWISE = {
    "table": [
        {**PLAIN["table"], "measure": "pay", "request": "asked"},
        {"by": ["region", "sex"]},
    ],
}


def entries():
    """Every place where a job takes members of a family: the job, the parameter, the family."""
    for kind, cls in members("job").items():
        for item in cls.parameters():
            base = statements.base_of(item.type)
            if base is not None:
                yield kind, item, base.family_name


ENTRIES = [pytest.param(*entry, id=f"{entry[0]}:{entry[1].name}") for entry in entries()]


def declared_with(kind, item, one):
    """Declarations of a job with one member, in the order in which they are tried."""
    several = get_origin(item.type) is tuple
    for given in (*OTHERWISE.get(kind, ()), PLAIN.get(kind, {})):
        yield {"kind": kind, **given, item.name: [one] if several else one}
    # What does not suffice alone is tried beside those of the plain declaration.
    if several and PLAIN.get(kind, {}).get(item.name):
        yield {"kind": kind, **PLAIN[kind], item.name: [one, *PLAIN[kind][item.name]]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The data; noise of OpenDP, which no key determines, is the same, and pictures are left out."""
    statements.write_people(tmp_path)

    drawn = opendp.mod.Measurement.__call__

    def steady(measurement, values):
        if not isinstance(drawn(measurement, values), list):
            return values.index(min(values))
        if not isinstance(values[0], float):
            return [value + 1 for value in values]
        # As wide as what is drawn: a search for noise that suffices must find some.
        scale = 1 / measurement.map(1.0)
        return [value + (place * 7 % 11 - 5) * scale for place, value in enumerate(values)]

    monkeypatch.setattr(opendp.mod.Measurement, "__call__", steady)
    for picture in ("bars", "scatter", "paired_bars", "heat_map", "curve"):
        monkeypatch.setattr(f"discreet.microdata.pictures.{picture}", lambda *_, **__: "")
    return tmp_path


def same_three_ways(declared, folder):
    """Run every declaration in the three ways and compare what was written."""
    keyed = {
        name: one | ({"key": "secret.key"} if is_release(one) else {})
        for name, one in declared.items()
    }
    statements.by_policy(keyed, folder, folder / "policy")
    source = statements.source(folder)
    for name, one in keyed.items():
        job = statements.job(one).located(folder)
        typed, called = (folder / way / (name + job.suffix) for way in ("typed", "called"))
        typed.parent.mkdir(exist_ok=True)
        called.parent.mkdir(exist_ok=True)
        statements.by_command(one, folder, typed)
        job.write(job.run(source), called)
        written = folder / "policy" / ("" if is_release(one) else "reports") / typed.name
        expected = statements.contents(called)
        assert expected
        assert differing(statements.contents(typed), expected) == [], f"{name}: typed, called"
        assert differing(statements.contents(written), expected) == [], f"{name}: written, called"


def differing(one, other) -> list[str]:
    """The names of files that are not the same; their bytes would fill the screen."""
    return [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]


def is_release(declared) -> bool:
    return members("job")[declared["kind"]].section == "releases"


def declaration(kind):
    """What a policy says of a job."""
    if kind in PLAIN:
        return {"kind": kind, **PLAIN[kind]}
    job = tried(members("job")[kind])[0]
    given = {
        item.name: spelled(getattr(job, item.name))
        for item in job.parameters()
        if getattr(job, item.name) != item.default
    }
    return {"kind": kind, **given}


@pytest.mark.parametrize("kind", list(members("job")))
def test_every_job_gives_the_same_in_three_ways(kind, folder, monkeypatch):
    if not is_release({"kind": kind}):  # reports take no key
        monkeypatch.setattr(Randomness, "secure", classmethod(lambda cls: cls.seeded(1)))
    same_three_ways({kind: declaration(kind)}, folder)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "item", "family"), ENTRIES)
def test_every_member_gives_the_same_in_three_ways(kind, item, family, folder, monkeypatch):
    if not is_release({"kind": kind}):
        monkeypatch.setattr(Randomness, "secure", classmethod(lambda cls: cls.seeded(1)))
    tried = statements.jobs_of(family, lambda one: declared_with(kind, item, one), folder)
    same_three_ways(dict(tried), folder)


#: What one job does in more than one way: linked tables, several statistics, tables in blocks.
WAYS = {
    "linked": {"kind": "table", "by": [["sex", "region"], ["sex", "job"]], "rules": [RULE]},
    "statistics": {
        "kind": "table",
        "by": ["sex"],
        "measure": "pay",
        "also": ["count"],
        "rules": [RULE],
    },
    # The codes of the others are those of the records.
    "large": {"kind": "table", "by": ["region"], "large": True, "method": "top-down"},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_a_table_gives_the_same_in_three_ways(way, folder):
    same_three_ways({way: WAYS[way]}, folder)


def test_the_same_key_gives_the_same_release_and_other_data_other_draws(folder):
    declared = {"kind": "mask", **PLAIN["mask"], "key": str(folder / "secret.key")}
    job = statements.job(declared)
    first, second = (job.run(statements.source(folder)).frame.pay.tolist() for _ in range(2))
    assert first == second
    lines = (folder / "people.csv").read_text().splitlines()
    lines[1] = lines[1].replace("p0,", "q0,")
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    assert job.run(statements.source(folder)).frame.pay.tolist() != first
    assert job.run(statements.source(folder)).evidence().randomness == "keyed"


def test_a_key_without_any_value_left_does_not_stop_the_risk(folder):
    people = statements.source(folder).open().frame
    empty = people.assign(age=float("nan"))
    found = dc.risk(people, empty, keys=["age", "sex"])
    assert 0 <= found["inference"].value <= 1
