"""Further cells withheld on shares: nobody can compute a sensitive cell from the margins."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.audit.intervals import audit_table
from discreet.audit.sensitivity import mark
from discreet.errors import InputError, RefusedError
from discreet.protocols.joint.hypercubes import NONE, Lattice
from discreet.protocols.joint.verification import verify_ledgers
from discreet.tables.published import audit_published
from tests.protocols.joint.here import here
from tests.protocols.joint.rehearsed import instance_records, policy_for, rehearse_table

RULES = (dc.MinimumFrequency(3), dc.PPercent(15))
STATED = [{"minimum-frequency": {"n": 3}}, {"p-percent": 15}]
CODES = {"icd": list("ABCDEF"), "ward": ["x", "y", "z", "w"]}
TREE = {"ward": {"south": ["x", "y"], "north": ["z", "w"]}}
SQL = "SELECT icd, ward, COUNT(*) AS n, SUM(cost) AS cost FROM stays GROUP BY icd, ward"


def owners(seed, n=260):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "icd": rng.choice(CODES["icd"], n, p=[0.3, 0.3, 0.2, 0.12, 0.05, 0.03]),
            "ward": rng.choice(CODES["ward"], n, p=[0.4, 0.3, 0.25, 0.05]),
            "cost": np.ceil(rng.lognormal(5, 1, n)).astype(int),
        }
    )
    whose = rng.integers(0, 3, n)
    return [frame[whose == one].reset_index(drop=True) for one in range(3)]


def agreed(keys=CODES, trees=TREE, rules=STATED, bound=1e9):
    return policy_for(
        3, keys=keys, hierarchies=trees, measures={"cost": {"bound": bound}}, rules=rules
    )


def unsafe(frames, policy, table, keys, measure, attackers=("outsider", "contributors")):
    """Sensitive cells that somebody can compute: anybody, a contributor, or an owner."""
    trees = {key: policy.tree(key) for key in keys}
    shown = {tuple(row[: len(keys)]): row[-1] == "safe"
             for row in table.frame[[*keys, "status"]].itertuples(index=False)}  # fmt: skip
    found = sensitive = 0
    for own in (None, *range(len(frames))):
        rest = pd.concat([frame for place, frame in enumerate(frames) if place != own])
        cells = dc.tabulate(dc.read(rest, hierarchies=trees), by=keys, measure=measure)
        marked = mark(cells, policy.rules)
        published = np.array([shown[tuple(cells.labels(i))] for i in range(len(cells))])
        assert not (published & (marked.status == 2)).any()
        for attacker in attackers:
            audit = audit_table(marked, published=published, attacker=attacker)
            found += audit.unsafe
            sensitive += audit.sensitive
    return found, sensitive


@pytest.mark.parametrize("seed", range(3))
def test_nobody_can_compute_a_sensitive_cell_from_the_margins(seed):
    frames, policy = owners(seed), agreed()
    table, announced = rehearse_table(frames, SQL, policy, margins=True)
    found, sensitive = unsafe(frames, policy, table, ["icd", "ward"], "cost")
    assert sensitive > 10
    assert found == 0
    whole = pd.concat(frames)
    opened = table.frame[table.frame.status == "safe"].set_index(["icd", "ward"])
    central = whole.groupby("icd").cost.sum().to_dict() | {"Total": whole.cost.sum()}
    margins = opened.xs("Total", level="ward").cost
    assert len(margins) > 2
    assert all(margins[icd] == central[icd] for icd in margins.index)
    assert {tuple(said) for said in announced.values()} == {tuple(announced["owner1"])}
    assert len(announced["owner1"]) == len(table.opened)


def test_without_further_cells_the_margins_tell_sensitive_ones():
    # The control: only the sensitive cells are withheld.
    frames, policy = owners(0), agreed()
    table, _ = rehearse_table(frames, SQL, policy, margins=True)
    naive, _ = rehearse_table(frames, SQL, policy)
    withheld = {tuple(row) for row in
                naive.frame[naive.frame.status == "withheld"][["icd", "ward"]].to_numpy()}  # fmt: skip
    frame = table.frame.assign(
        status=[
            "withheld" if tuple(row) in withheld else "safe"
            for row in table.frame[["icd", "ward"]].to_numpy()
        ]
    )
    cells = dc.tabulate(
        dc.read(pd.concat(frames), hierarchies={k: policy.tree(k) for k in CODES}),
        by=list(CODES), measure="cost",
    )  # fmt: skip
    shown = dict(zip(map(tuple, frame[["icd", "ward"]].to_numpy()), frame.status, strict=True))
    published = [shown[tuple(cells.labels(i))] == "safe" for i in range(len(cells))]
    marked = mark(cells, RULES)
    published = np.array(published) & (marked.status != 2)
    assert audit_table(marked, published=published).unsafe > 0


def test_the_release_is_audited_from_its_files_alone(tmp_path):
    frames, policy = owners(1), agreed()
    table, _ = rehearse_table(frames, SQL, policy, margins=True)
    folder = table.write(tmp_path / "out")
    for file in ("cells.csv", "cells-n.csv"):
        audit = audit_published(folder / file)
        assert audit.safe, audit.verdict
        assert audit.sensitive > 0
    assert "uniformly random to it" in (folder / "report.html").read_text()
    text = "".join(path.read_text() for path in folder.iterdir())
    assert "secondary" not in text  # sensitive and protecting cells are marked alike


def test_sums_that_follow_from_each_other_move_together():
    frames = [f.assign(bonus=f.cost // 3, pay=f.cost + f.cost // 3) for f in owners(2)]
    measures = {name: {"bound": 1e9} for name in ("cost", "bonus", "pay")}
    policy = policy_for(3, keys=CODES, measures=measures, rules=STATED)
    table, _ = rehearse_table(frames, SQL, policy, margins=True)
    for measure in measures:
        assert unsafe(frames, policy, table, ["icd", "ward"], measure, ("outsider",))[0] == 0


def test_hypercubes_move_no_cell_that_stays_open():
    policy = agreed()
    lattice = Lattice(tuple(policy.tree(key) for key in CODES))
    rng = np.random.default_rng(0)
    none = np.zeros(len(lattice.leaves), dtype=bool)
    for cell in rng.choice(len(none), 20, replace=False):
        found = lattice.candidates(int(cell), none, none, 50)
        for place in range(len(found)):
            corners = [one for one in found.corners[place] if one != NONE]
            if lattice.leaves[cell]:
                corners.append(int(cell))
            move = np.zeros(len(none), dtype=np.int64)
            moved = set(found.moved(place, lattice).tolist())
            assert set(corners) <= moved
            # Some signs of the corners move the cell, and nothing beside what is to be withheld.
            for signs in _signs(sorted(set(corners)), lattice):
                move[:] = 0
                for corner, sign in signs.items():
                    move[corner] = sign
                everywhere = lattice.added(move)
                if set(np.flatnonzero(everywhere).tolist()) == moved and everywhere[cell]:
                    break
            else:
                raise AssertionError("no movement explains the hypercube")


def _signs(corners, lattice):
    """Signs that alternate along each dimension."""
    at = [np.unravel_index(corner, lattice.shape) for corner in corners]
    firsts = [min(one[d] for one in at) for d in range(len(lattice.shape))]
    yield {
        corner: (-1) ** sum(int(p != f) for p, f in zip(one, firsts, strict=True))
        for corner, one in zip(corners, at, strict=True)
    }


@pytest.mark.parametrize(
    "trees",
    [
        {"ward": {"south": ["x", "nowhere"]}},
        {"ward": {"south": ["x", "y"], "east": ["x"]}},
        {"ward": {"x": ["y"]}},
        {"ward": {"a": ["b", "x"], "b": ["a"]}},
        {"sex": {"a": ["x"]}},
    ],
)
def test_hierarchies_that_are_no_trees_are_refused(trees):
    with pytest.raises(InputError):
        agreed(trees=trees)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["ssb_magnitude1", "sdctable_microdata1", "testW_size_region", "insee_act_size",
     "insee_act_nuts2", "synth_25x37", "synth_13x13x5", "ssb_z3", "ent_act_product",
     "synth_89x111", "testW_ind4_region", "synth_26x21x19", "ssb_sosialFiktiv",
     "testW_ind4_region_size"],
)  # fmt: skip
def test_stored_tables_split_over_three_owners(data_folder, name):
    keys, codes, trees, frames = instance_records(data_folder, name)
    policy = policy_for(
        3, keys=codes, hierarchies=trees, measures={"value": {"bound": 1e11}}, rules=STATED
    )
    listed = ", ".join(keys)
    sql = f"SELECT {listed}, COUNT(*) AS n, SUM(value) AS value FROM stays GROUP BY {listed}"
    table, _ = rehearse_table(frames, sql, policy, margins=True)
    found, sensitive = unsafe(frames, policy, table, keys, "value", ("outsider",))
    assert sensitive > 0
    assert found == 0


def test_margins_over_tls_with_an_independent_node_and_ledgers_that_agree():
    frames = owners(1)[:2]
    stated = {"keys": CODES, "hierarchies": TREE, "measures": {"cost": {"bound": 1e9}}}
    with here(frames, rules=STATED, **stated) as joint:
        table = joint.table(list(CODES), "cost", margins=True)
        assert 0 < table.withheld < len(table.frame)
        again = joint.ask(SQL.replace("SUM(cost) AS cost", "AVG(cost) AS mean"), margins=True)
        assert (again.frame.status == table.frame.status).all()
        # Other totals of the same records would tell withheld cells.
        for other in ({"totals": True}, {}):
            with pytest.raises(RefusedError) as caught:
                joint.ask(SQL, **other)
            assert caught.value.code == "joint-history"
        with pytest.raises(InputError):
            joint.ask(SQL, totals=True, margins=True)
        found = verify_ledgers(list(joint.files.values()))
        assert found.agrees, found.findings
    assert unsafe(frames, joint.policy, table, list(CODES), "cost")[0] == 0
