"""A judgement with earlier releases ends: decided, or refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import discreet as dc
from discreet.audit.alternatives import alternatives
from discreet.audit.solver import LinearProgram
from discreet.ledger.memory import Memory
from discreet.progress import OutOfTimeError, limited
from discreet.tables.memory import JointJudgement
from discreet.tables.remembering import _told
from tests.memory.universes import recorded

RULES = [dc.MinimumFrequency(3)]


def firms() -> dc.Dataset:
    rng = np.random.default_rng(4)
    columns = {name: rng.integers(0, 4, 60).astype(str) for name in ("region", "sector", "form")}
    frame = pd.DataFrame(columns).assign(turnover=rng.integers(1, 900, 60))
    roles = dict.fromkeys(columns, "quasi") | {"turnover": "confidential"}
    return dc.read(frame, roles=roles, name="firms")


def test_what_is_not_decided_in_time_is_refused_and_leaves_nothing() -> None:
    data = firms()
    with dc.open_ledger() as ledger:
        earlier = dc.tabulate(data, by=["region", "sector"], measure="turnover")
        recorded(earlier.protect(RULES, ledger=ledger), ledger, "1")
        entries = ledger.last("firms", "release")
        new = dc.tabulate(data, by=["region", "form"], measure="turnover")
        with pytest.raises(dc.InfeasibleError, match="was not decided within") as error:
            new.protect(RULES, ledger=ledger, patience=0.0)
        assert error.value.code == "not-decided"
        assert "patience=0" in str(error.value)
        assert ledger.last("firms", "release") == entries
        new.protect(RULES, ledger=ledger)  # in time


def test_work_in_c_ends_in_time_too() -> None:
    one = np.ones(1)
    program = LinearProgram(
        sparse.csc_matrix([[1.0]]), rows=(one, one), columns=(0 * one, 2 * one), cost=one
    )
    with limited(0.0):
        with pytest.raises(OutOfTimeError):
            program.solve()
        with pytest.raises(OutOfTimeError):
            alternatives(sparse.csr_matrix(np.ones((1, 2))), np.ones(2), np.ones((2, 1)))
    assert program.solve().x.tolist() == [1.0]


def test_what_an_earlier_release_tells_alone_does_not_stop_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two cells of one firm each, withheld beside each other, are told in sum by their own table."""
    monkeypatch.setattr("discreet.audit.joint._MANY", 1)
    frame = pd.DataFrame({
        "region": ["N"] * 8 + ["S"] * 8,
        "sector": ["A", "B", *"CCCDDD", "A", "B", *"CCCDDD"],
        "form": [*"xyxyxyxy"] * 2,
        "turnover": [30 + 7 * n for n in range(16)],
    })  # fmt: skip
    roles = {"region": "quasi", "sector": "quasi", "form": "quasi", "turnover": "confidential"}
    data = dc.read(frame, roles=roles, name="firms")
    method = dc.Suppression(attacker="outsider")
    with dc.open_ledger() as ledger:
        earlier = dc.tabulate(data, by=["region", "sector"], measure="turnover")
        first = earlier.protect(RULES, method)
        recorded(first, ledger, "1")
        assert first.protected.withheld.sum() == 6  # A and B of each region, and of both
        new = dc.tabulate(data, by=["form"], measure="turnover")
        with Memory(ledger, data) as memory:
            release = new.protect(RULES, method)
            fact = _told(release, memory, np.ones(len(new), dtype=bool))
            joint = JointJudgement(memory, fact)
            found = joint.exposed(np.ones(len(new), dtype=bool), np.random.default_rng(1))
            assert found is not None
            assert not len(found)
            monkeypatch.setattr(JointJudgement, "_told_groups", [])  # as if it counted
            again = JointJudgement(memory, fact)
            found = again.exposed(np.ones(len(new), dtype=bool), np.random.default_rng(1))
        assert found is not None
        assert len(found) == 4
