"""Microdata from a policy file: checked, run, written."""

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.app.policy.run import check_policy, run_policy

POLICY = """
data:
  source: people.csv
  roles: {name: identifier, age: quasi, pay: confidential}
releases:
  - name: masked
    kind: mask
    methods:
      - microaggregation: {columns: [age], k: 4}
      - rank-swapping: {columns: pay, p: 10}
  - name: grown
    kind: strengthen
    methods:
      - microaggregation: {columns: [age], k: 2}
    below: 0.3
    measure: re-identification
"""


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "name": [f"p{i}" for i in range(100)],
            "age": rng.integers(18, 90, 100),
            "pay": rng.normal(3000, 400, 100).round(2),
        }
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def test_both_kinds_run_from_a_policy(folder):
    record = run_policy(folder / "policy.yaml", folder / "out")
    assert {done.kind for done in record.done} == {"mask", "strengthen"}
    for done in record.done:
        assert done.verdict.startswith("safe under k-anonymity")
    rows = list((folder / "out").rglob("*.csv"))
    assert len(rows) == 2
    assert list(pd.read_csv(rows[0]).columns) == ["age", "pay"]


def test_a_wrong_column_is_found_by_checking(folder):
    text = POLICY.replace("columns: pay", "columns: payy")
    (folder / "policy.yaml").write_text(text)
    with pytest.raises(dc.InputError, match="payy"):
        check_policy(folder / "policy.yaml")
    with pytest.raises(dc.InputError, match="payy"):
        run_policy(folder / "policy.yaml", folder / "out")
    assert not list(folder.rglob("evidence.json"))
