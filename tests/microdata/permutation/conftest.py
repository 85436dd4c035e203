"""Releases made of a given partition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from discreet.data.engines import Engine
from discreet.microdata.permutation.amounts import Amounts
from discreet.microdata.permutation.groups import GROUP, Groups
from discreet.microdata.permutation.release import Permuted
from discreet.randomness import Randomness


def released(engine: Engine, quasi: dict, values, labels, *, seed: int = 0) -> Permuted:
    """A release of a partition that was given, not found."""
    amounts = Amounts.of(pa.array(values), name="s")
    groups = Groups.of(amounts, np.asarray(labels, dtype=np.int64))
    rows = pa.table(quasi).take(pa.array(groups.order))
    rows = rows.append_column(GROUP, [groups.ids])
    rows = rows.append_column("s", groups.permuted(Randomness.seeded(seed)))
    return Permuted(
        engine.load(rows), engine.load(groups.help_table()), name="t", sensitive="s",
        library="pyarrow", randomness="seeded",
    )  # fmt: skip
