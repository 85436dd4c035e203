"""What an attacker computes who reads everything a release tells: statuses, evidence, rules."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from tests.tables.instances import random_table

import discreet as dc

RULE = 3


def counts(seed: int) -> dc.Table:
    """A table of counts with many small cells and some empty ones."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(60, 300))
    frame = pd.DataFrame(
        {
            "a": rng.choice(list("ABCDEF"), size, p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04]),
            "b": rng.choice(list("uvwxy"), size, p=[0.5, 0.25, 0.15, 0.06, 0.04]),
        }
    )
    return dc.tabulate(dc.read(frame), ["a", "b"])


def known_exactly(table, published, low, high) -> list[int]:
    """Return the withheld cells of which only one whole number is possible."""
    hidden = np.flatnonzero(published.value.isna())
    shown = np.flatnonzero(published.value.notna())
    equations = table.equations.toarray()
    right = -equations[:, shown] @ published.value.to_numpy()[shown]
    found = []
    for place, cell in enumerate(hidden):
        ends = []
        for sign in (1, -1):
            aim = np.zeros(len(hidden))
            aim[place] = sign
            solved = milp(
                aim,
                constraints=LinearConstraint(equations[:, hidden], right, right),
                integrality=np.ones(len(hidden)),
                bounds=Bounds(low[hidden], high[hidden]),
            )
            # The truth is one of the tables; so what has no optimum has no end.
            assert solved.success or "unbounded" in solved.message
            ends.append(sign * solved.fun if solved.success else np.inf)
        if ends[1] - ends[0] < 0.5:
            found.append(int(cell))
    return found


@pytest.mark.parametrize(
    "seeds",
    [range(4), pytest.param(range(4, 120), marks=pytest.mark.slow)],
    ids=["some", "many"],
)
@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_files_and_rule_together_tell_no_count(tmp_path, attacker, seeds):
    for seed in seeds:
        table = counts(seed)
        release = table.protect([dc.MinimumFrequency(RULE)], dc.Suppression(attacker=attacker))
        folder = release.write(tmp_path / str(seed))
        published = pd.read_csv(folder / "cells.csv")
        rule = json.loads((folder / "evidence.json").read_text())["settings"]["rules"][0]["n"]
        assert rule == RULE
        # Withheld is not empty; told to be sensitive is below the rule, secondary is not.
        low = published.status.map({"secondary": rule}).fillna(1.0).to_numpy()
        high = published.status.map({"primary": rule - 1.0}).fillna(np.inf).to_numpy()
        primary = np.flatnonzero(release.protected.status == 2)
        assert primary.size
        exact = known_exactly(table, published, low, high)
        assert not set(exact) & set(primary.tolist())


def test_files_do_not_tell_how_many_cells_are_sensitive(tmp_path):
    """All secondaries turned into sensitive cells, with the same values: the same files."""
    table = random_table(3, (4, 3))
    first = table.protect([dc.PPercent(15), dc.MinimumFrequency(2)])
    status = np.where(first.protected.withheld, np.int8(2), np.int8(0))
    second = table.replace(
        status=status, lower=np.zeros(len(table)), upper=np.zeros(len(table))
    ).protect([dc.PPercent(15), dc.MinimumFrequency(2)])
    assert first.loss.secondaries > 0
    assert second.loss.secondaries == 0
    assert (first.protected.withheld == second.protected.withheld).all()
    one, two = first.write(tmp_path / "one"), second.write(tmp_path / "two")
    for name in ("cells.csv", "evidence.json", "report.html"):
        texts = [(folder / name).read_text(encoding="utf-8") for folder in (one, two)]
        texts = [re.sub(r"\d+-\d+-\d+T[\d:]+", "", text) for text in texts]
        assert texts[0] == texts[1]
    assert set(pd.read_excel(one / "cells.xlsx", engine="openpyxl").conf_status) == {"F", "C"}
    assert set(first.cells.conf_status) == {"F", "C", "D"}  # in the house


def test_audit_of_a_file_of_counts_knows_that_zeros_are_not_withheld(tmp_path):
    for seed in (1, 2):
        release = counts(seed).protect([dc.MinimumFrequency(RULE)])
        folder = release.write(tmp_path / str(seed))
        own = release.audit(attacker="outsider", exact=True).intervals
        found = dc.audit_published(folder / "cells.csv").intervals
        both = own.merge(found, on=["a", "b"], suffixes=("", "_file"))
        assert len(both) == len(own)
        assert np.allclose(both[["lower", "upper"]], both[["lower_file", "upper_file"]])
        assert (found.lower >= 1 - 1e-9).all()
        plain = dc.audit_published(folder / "cells.csv", counts=False).intervals
        assert (plain.lower < 1 - 1e-9).any()


def test_hierarchies_beside_a_file_are_all_used(tmp_path):
    rng = np.random.default_rng(1)
    one = dc.Hierarchy.from_pairs(
        [("All", ""), ("p", "All"), ("q", "All"), ("a", "p"), ("b", "p"), ("c", "q"), ("d", "q")]
    )
    two = dc.Hierarchy.from_pairs(
        [("All", ""), ("s", "All"), ("r", "All"), ("a", "s"), ("c", "s"), ("b", "r"), ("d", "r")]
    )
    frame = pd.DataFrame(
        {
            "size class": rng.choice(list("abcd"), 40),
            "region": rng.choice(list("NS"), 40),
            "x": rng.lognormal(3, 1, 40),
        }
    )
    data = dc.read(frame, hierarchies={"size class": [one, two]})
    release = dc.tabulate(data, ["size class", "region"], "x").protect(
        [dc.PPercent(40), dc.MinimumFrequency(5)]
    )
    folder = release.write(tmp_path / "out")
    own = release.audit(attacker="outsider", exact=True).intervals
    found = dc.audit_published(folder / "cells.csv").intervals
    both = own.merge(found, on=["size class", "region"], suffixes=("", "_file"))
    assert len(both) == len(own) > 0
    assert np.allclose(both[["lower", "upper"]], both[["lower_file", "upper_file"]], atol=1e-6)


def test_verdicts_say_what_was_judged(tmp_path):
    cells = pd.DataFrame({"g": ["Total", "a", "b", "c"], "value": [10, None, None, 4]})
    assert (
        dc.audit_published(cells, total="Total").verdict
        == "safe: nobody can compute any of 2 cells exactly"
    )
    assert "to within 150 %" in dc.audit_published(cells, total="Total", protection=150).verdict
    told = cells.assign(value=[10, None, 6, 3])
    assert dc.audit_published(told, total="Total").verdict.startswith(
        "not safe: anybody can compute 1 of 1"
    )
    assert (
        dc.audit_published(cells.assign(value=[10, 1, 5, 4])).verdict == "safe: no cell is withheld"
    )
    # Without a rule nothing is sensitive, which is no reason to call a table safe.
    release = counts(1).protect([], dc.CellKey())
    assert release.verdict.startswith("not judged")
    evidence = json.loads((release.write(tmp_path / "out") / "evidence.json").read_text())
    assert evidence["verdict"].startswith("not judged")
    assert evidence["risk"]["safe"] is None


def test_intervals_from_a_file_hold_no_errors_of_the_solver():
    table = random_table(4, (4, 3))
    release = table.protect([dc.PPercent(15), dc.MinimumFrequency(2)])
    found = dc.audit_published(release.published, {d.name: d.hierarchies for d in table.dimensions})
    assert (found.intervals.lower >= 0).all()
