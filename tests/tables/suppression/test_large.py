"""The larger published instances against contributors, audited to the exact end of every interval."""

from __future__ import annotations

import pytest
from tests.tables.instances import instance

from discreet.audit.intervals import audit_table
from discreet.tables.suppression.engine import suppress

CASES = [
    ("testW_ind4_region", "balanced", "count"),
    ("testW_ind4_region", "fast", "value"),
    ("ssb_sosialFiktiv", "fast", "value"),
    ("synth_89x111", "fast", "count"),
    ("synth_26x21x19", "fast", "value"),
    ("testW_ind4_region_size", "fast", "count"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "effort", "objective"), CASES)
def test_no_contributor_infers_a_sensitive_cell(data_folder, name, effort, objective):
    table = instance(data_folder, name)
    pattern = suppress(table, effort=effort, objective=objective, attacker="contributors")
    outside, inside = (
        audit_table(table, published=pattern.status, attacker=attacker, exact=True)
        for attacker in ("outsider", "contributors")
    )
    assert outside.unsafe == inside.unsafe == 0
    # Who knows more sees no more tables.
    slack = 1e-6 * (1 + abs(outside._upper))
    assert (inside._lower >= outside._lower - slack).all()
    assert (inside._upper <= outside._upper + slack).all()
