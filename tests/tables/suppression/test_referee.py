"""Patterns judged by a referee that shares no code with the auditor, contributors included."""

import numpy as np
import pytest
from tests.tables.instances import instance, random_table
from tests.tables.referee import unsafe_cells

import discreet as dc
from discreet.audit.intervals import audit_table
from discreet.audit.sensitivity import mark
from discreet.tables.suppression.engine import suppress

#: The published instances on which referee and search end within ten minutes.
NAMES = [
    "sdctable_microdata1",
    "ssb_magnitude1",
    "testW_size_region",
    "insee_act_size",
    "insee_act_nuts2",
    "ssb_z3",
    "ent_act_product",
    "synth_25x37",
    "synth_13x13x5",
    "testW_ind4_region",
    "synth_89x111",
    "ssb_sosialFiktiv",
]
#: Those on which the referee does not end: a sample of so many sensitive cells is judged.
SAMPLED = {"synth_26x21x19": 30, "testW_ind4_region_size": 30}
RULES = [dc.PPercent(15), dc.MinimumFrequency(2)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_referee_and_auditor_agree_on_any_pattern(seed, attacker):
    """Cells withheld at random: what one calls unsafe the other does, too."""
    table = mark(random_table(seed, (4, 3)), RULES)
    rng = np.random.default_rng(seed)
    found = 0
    for part in (0.2, 0.5, 0.8):
        withheld = (table.status == 2) | ((rng.uniform(size=len(table)) < part) & (table.value > 0))
        audit = audit_table(table, published=~withheld, attacker=attacker)
        wrong = unsafe_cells(table, withheld, attacker)
        assert sorted(audit.cells[~audit._safe].tolist()) == wrong
        found += len(wrong)
    assert found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_no_contributor_infers_a_cell(seed, effort):
    table = mark(random_table(10 + seed, (5, 4)), RULES)
    try:
        pattern = suppress(table, effort=effort, attacker="contributors", key=bytes([seed]))
    except dc.InfeasibleError:
        return
    assert unsafe_cells(table, pattern.withheld, "contributors") == []


def test_protection_against_outsiders_only_is_found_out():
    """The control: contributors break patterns that were made against outsiders."""
    broken = 0
    for seed in range(6):
        table = mark(random_table(seed, (4, 3)), RULES)
        pattern = suppress(table, attacker="outsider")
        assert unsafe_cells(table, pattern.withheld, "outsider") == []
        broken += len(unsafe_cells(table, pattern.withheld, "contributors"))
    assert broken


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_contributor_infers_a_cell_of_an_instance(data_folder, name):
    table = instance(data_folder, name)
    pattern = suppress(table, effort="fast", attacker="contributors", key=b"referee")
    assert unsafe_cells(table, pattern.withheld, "contributors") == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLED)
def test_no_contributor_infers_a_sampled_cell_of_a_large_instance(data_folder, name):
    table = instance(data_folder, name)
    pattern = suppress(table, effort="fast", attacker="contributors", key=b"referee")
    sensitive = np.flatnonzero(table.status == 2)
    some = np.random.default_rng(15).choice(sensitive, SAMPLED[name], replace=False)
    assert unsafe_cells(table, pattern.withheld, "contributors", some.tolist()) == []
