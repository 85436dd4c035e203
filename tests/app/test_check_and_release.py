"""What `check` says can be done, `release` does; what it refuses, is refused in the same words."""

from __future__ import annotations

import copy
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml

import discreet as dc
from discreet.app.policy.run import check_policy, run_policy
from discreet.dp.grant import Grant
from discreet.errors import DiscreetError

ROLES = {"name": "identifier", "age": "quasi", "region": "quasi", "salary": "confidential"}
AGE = {"age": {"widths": [10, 20]}}
HALF = {**AGE, "region": {"levels": {"All": ["N"]}}}
GROUPS = {**AGE, "region": {"levels": {"N": ["n1", "n2"], "S": ["s1"]}}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("policies")
    source = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "name": [f"n{place:03d}" for place in range(60)],
            "age": source.integers(20, 60, 60),
            "region": source.choice(["N", "S"], 60),
            "salary": source.permutation(60) * 1_000,
        }
    )
    frame.assign(tax=frame.salary * 0.3).to_csv(made / "people.csv", index=False)
    return made


def outcome(action) -> str:
    """The code of the error, or that there was none."""
    try:
        action()
    except DiscreetError as error:
        return error.code
    return "done"


def model(name, **settings):
    return {"kind": "anonymize", "models": [{name: settings}]}


K5 = model("k-anonymity", k=5)
PERMUTED = {"kind": "permutation", "sensitive": "salary", "k": 5, "e": 2000}
COUNTS = {"kind": "table", "rules": [{"minimum-frequency": 3}]}
CASES = [
    ({}, {**model("t-closeness", column="salary", t=0.1, distance="hierarchical"), "method": "mondrian"}, "missing-hierarchy"),
    ({}, {**model("l-diversity", column="salary", l=2), "method": "local-suppression"}, "model-not-supported"),
    ({}, {**K5, "method": {"local-suppression": {"importance": ["nobody"]}}}, "unknown-column"),
    ({}, {**model("k-map", k=3, population="people.csv"), "method": "mondrian"}, "model-not-supported"),
    ({}, {**K5, "method": "mondrian"}, "done"),
    ({"hierarchies": HALF}, K5, "hierarchy-not-covering"),
    ({"hierarchies": HALF}, {**K5, "method": "mondrian"}, "hierarchy-not-covering"),
    ({"hierarchies": HALF}, {**K5, "method": "microaggregation-to-k"}, "hierarchy-not-covering"),
    ({"hierarchies": GROUPS}, {"kind": "mask", "methods": [{"microaggregation": {"columns": ["region"], "k": 5}}]}, "hierarchy-not-covering"),
    ({"hierarchies": GROUPS}, {"kind": "mask", "methods": [{"global-recoding": {"columns": ["region"], "level": 1}}]}, "hierarchy-not-covering"),
    ({}, {"kind": "mask", "methods": [{"microaggregation": {"columns": ["age"], "k": 500}}]}, "k-too-large"),
    ({}, {**PERMUTED, "e": 2_000_000}, "permutation-infeasible"),
    ({}, {**PERMUTED, "k": 61}, "permutation-infeasible"),
    ({}, {**PERMUTED, "sensitive": "region", "k": 2}, "no-range"),
    ({}, {**PERMUTED, "partition": {"local": {"columns": ["nobody"]}}}, "unknown-column"),
    ({"roles": {**ROLES, "tax": "quasi"}}, PERMUTED, "predicting-columns"),
    ({"unit": "region", "roles": {**ROLES, "region": "identifier"}}, PERMUTED, "too-few-records"),
    ({"unit": "region"}, {**K5, "method": "mondrian"}, "contradicting-roles"),
    ({}, PERMUTED, "done"),
    ({}, {**COUNTS, "by": ["name"]}, "identifier-dimension"),
    ({"hierarchies": HALF}, {**COUNTS, "by": ["region"]}, "hierarchy-not-covering"),
    ({"weight": "region"}, {**COUNTS, "by": ["age"]}, "bad-weight"),
    ({"delimiter": ""}, {**COUNTS, "by": ["age"]}, "csv-mark"),
    ({"delimiter": '"'}, {**COUNTS, "by": ["age"]}, "csv-mark"),
    ({"decimal": "ab"}, {**COUNTS, "by": ["age"]}, "csv-mark"),
    ({}, {**COUNTS, "by": ["region"]}, "done"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "job", "code"), CASES)
def test_check_and_release_agree(folder, tmp_path, data, job, code):
    source = {"source": "people.csv", "roles": ROLES, "rest": "identifier", **data}
    policy = folder / "policy.yaml"
    policy.write_text(yaml.safe_dump({"data": source, "releases": [{"name": "a", **job}]}))
    assert outcome(lambda: check_policy(policy)) == code
    assert outcome(lambda: run_policy(policy, tmp_path / "out")) == code
    assert (tmp_path / "out").exists() == (code == "done")


@pytest.mark.parametrize("place", [".", "people.csv"])
def test_a_ledger_that_is_none_fails_check(folder, place):
    data = {"source": "people.csv", "roles": ROLES, "rest": "identifier"}
    job = {"name": "a", **COUNTS, "by": ["region"], "ledger": place}
    policy = folder / "policy.yaml"
    policy.write_text(yaml.safe_dump({"data": data, "releases": [job]}))
    assert outcome(lambda: check_policy(policy)) == "not-a-ledger"


def test_a_ledger_in_the_output_folder_is_refused_before_it_is_made(folder, tmp_path):
    """It was made, the release then refused, and every later one into the folder as well."""
    out = folder / "out"
    data = {"source": "people.csv", "roles": ROLES, "rest": "identifier"}
    job = {"name": "a", **COUNTS, "by": ["region"], "ledger": "out/l.db"}
    policy = folder / "policy.yaml"
    policy.write_text(yaml.safe_dump({"data": data, "releases": [job]}))
    assert outcome(lambda: run_policy(policy, out)) == "ledger-in-output"
    assert not out.exists()


def test_a_key_that_does_not_sign_fails_check(folder, tmp_path):
    data = {"source": "people.csv", "roles": ROLES, "rest": "identifier"}
    job = {"name": "a", **COUNTS, "by": ["region"], "ledger": "l.db", "sign": "people.csv"}
    policy = folder / "policy.yaml"
    policy.write_text(yaml.safe_dump({"data": data, "releases": [job]}))
    assert outcome(lambda: check_policy(policy)) == "not-a-signing-key"


PRIVATE = {"kind": "synthesize", "method": {"mst": {"epsilon": 1.0, "delta": 1e-6}}}
NOISY = {**COUNTS, "rules": [], "by": ["region"], "method": {"dp-noise": {"epsilon": 1.0}}}
BOUNDED = {
    "roles": {"region": "quasi", "age": "quasi"},
    "domains": {"region": ["N", "S"], "age": {"bounds": [0, 100]}},
}


@pytest.mark.parametrize(
    ("granted", "jobs", "code"),
    [
        (None, [NOISY], "no-grant"),
        (None, [PRIVATE], "no-grant"),
        (0.5, [NOISY], "budget-exhausted"),
        (1.5, [NOISY], "done"),
        (1.5, [NOISY, NOISY], "budget-exhausted"),  # each alone would do
        (None, [{**COUNTS, "by": ["region"]}], "done"),
    ],
)
def test_check_foresees_what_the_grant_holds(folder, tmp_path, granted, jobs, code):
    ledger = tmp_path / "memory.db"
    shutil.copy(folder / "people.csv", tmp_path)  # whose history is in no other ledger
    if granted is not None:
        with dc.open_ledger(ledger) as book:
            book.set_grant("people", Grant(granted, 1e-5, "zcdp").to_dict())
    before = ledger.exists() and ledger.read_bytes()
    policy = tmp_path / "policy.yaml"
    source = {"source": "people.csv", "rest": "identifier", **BOUNDED}
    releases = [copy.deepcopy({"name": f"r{place}", **job}) for place, job in enumerate(jobs)]
    said = {"data": source, "ledger": ledger.name, "releases": releases}
    policy.write_text(yaml.safe_dump(said))
    assert outcome(lambda: check_policy(policy)) == code
    assert (ledger.exists() and ledger.read_bytes()) == before  # check writes nothing
    assert outcome(lambda: run_policy(policy, tmp_path / "out")) == code
