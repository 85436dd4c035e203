"""The linear program that judges tables sees what a file gives away."""

import dataclasses

import numpy as np

import discreet as dc
from discreet.data.table import Status
from tests.laws import table_method


def test_a_secondary_that_is_printed_after_all_is_seen():
    release = dc.tables.protect(table_method.table(3), table_method.RULES, dc.Suppression())
    cells, _ = table_method.written(release)
    assert table_method.outsider_is_kept_away(release, cells)
    secondary = np.flatnonzero(release.protected.status == Status.SECONDARY)
    assert secondary.size
    shown = [dict(cell) for cell in cells]
    for place in secondary:
        shown[place]["value"] = repr(float(release.table.value[place]))
    assert not table_method.outsider_is_kept_away(release, shown)


def test_a_published_value_that_is_too_near_is_seen():
    method = dc.ControlledTabularAdjustment()
    release = dc.tables.protect(table_method.table(3), table_method.RULES, method)
    cells, _ = table_method.written(release)
    assert table_method.outsider_is_kept_away(release, cells)
    true = [
        {**cell, "value": repr(float(v))}
        for cell, v in zip(cells, release.table.value, strict=True)
    ]
    assert not table_method.outsider_is_kept_away(dataclasses.replace(release), true)
