"""Suppression on the published instances, against the peers' figures measured on this kind of machine.

python benchmarks/tables_instances.py                       # those on which a safe peer finished
python benchmarks/tables_instances.py --all --effort fast   # all fourteen
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import pandas as pd

from discreet.audit.intervals import audit_table
from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Table
from discreet.tables.suppression.engine import suppress

#: Secondaries and value of the best safe peer; CPU seconds of GaussSuppression with intervals;
#: value of GaussSuppression's default, which handles singletons, where that is safe.
PEERS: dict[str, tuple[int | None, int | None, float | None, int | None]] = {
    "sdctable_microdata1": (3, 402, 0.35, 402),
    "ssb_magnitude1": (3, 4127, 0.5, 5180),
    "testW_size_region": (6, 521926, 0.46, 1092497),
    "insee_act_size": (26, 762022, 0.49, 762022),
    "insee_act_nuts2": (17, 350117, 1.4, 392789),
    "ssb_z3": (151, 898, 4.1, None),
    "ent_act_product": (63, 260341, 5.7, 328519),
    "synth_25x37": (121, 80690, 8.0, None),
    "synth_13x13x5": (187, 279833, 16.2, None),
    "testW_ind4_region": (None, None, None, None),
    "synth_89x111": (None, None, None, None),
    "synth_26x21x19": (None, None, None, None),
    "ssb_sosialFiktiv": (1130, 6382, None, None),
    "testW_ind4_region_size": (None, None, None, None),
}


def data() -> Path | None:
    """Return the folder with the instances, if it is there."""
    default = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    folder = Path(os.environ.get("DISCREET_DATA", default)).resolve() / "tables"
    return folder if folder.is_dir() else None


def read(folder: Path) -> Table:
    """Return an instance with its given primaries and levels."""
    cells = pd.read_csv(folder / "cells.csv", keep_default_na=False)
    by = list(cells.columns[: cells.columns.get_loc("value")])
    hierarchies = {
        name: Hierarchy.from_pairs(
            pd.read_csv(folder / f"hier_{name}.csv", keep_default_na=False, dtype=str).itertuples(
                index=False, name=None
            )
        )
        for name in by
    }
    return Table.from_cells(
        cells.astype(dict.fromkeys(by, str)),
        by=by,
        value="value",
        count="freq",
        hierarchies=hierarchies,
        contributions=["max1", "max2"],
        primary="primary",
        lower="lpl",
        upper="upl",
        cost="cost",
    )


def run(
    folder: Path,
    name: str,
    effort: str,
    attacker: str,
    objective: str,
    *,
    exact: bool = True,
    key: bytes | None = None,
) -> None:
    table = read(folder / name)
    began = time.process_time()
    pattern = suppress(table, objective=objective, effort=effort, attacker=attacker, key=key)
    seconds = time.process_time() - began
    audit = audit_table(table, published=pattern.status, attacker=attacker, exact=exact)
    count, value, clock, default = PEERS[name]
    peer = (count if objective == "count" else value) if attacker == "outsider" else default
    ours = pattern.secondaries if objective == "count" else pattern.suppressed_value
    if attacker != "outsider" and objective == "count":
        peer = None
    against = "" if peer is None else f"{ours / peer:6.2f} of the best safe peer"
    speed = (
        "" if clock is None or attacker != "outsider" else f"{seconds / clock:6.3f} of its CPU time"
    )
    print(
        f"{name:<22} {effort:<8} {objective:<6} {pattern.secondaries:>6} secondaries "
        f"{pattern.suppressed_value:>12,.0f} value  unsafe {audit.unsafe}  "
        f"gap {pattern.gap if pattern.gap is None else round(pattern.gap, 4)}  "
        f"{seconds:7.2f} CPU s  {against} {speed}",
        flush=True,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--all", action="store_true", help="also where no safe peer finishes")
    options.add_argument("--effort", default="balanced", choices=["fast", "balanced", "optimal"])
    options.add_argument("--attacker", default="outsider", choices=["outsider", "contributors"])
    options.add_argument("--objective", nargs="*", default=["count", "value"])
    options.add_argument(
        "--early-stop", action="store_true", help="audit until needs are met, not exact intervals"
    )
    options.add_argument(
        "--key", help="break ties by this text, as a release does by its key", type=str.encode
    )
    options.add_argument("names", nargs="*")
    given = options.parse_args()
    folder = data()
    if folder is None:
        raise SystemExit("the instances are not here; set DISCREET_DATA")
    chosen = given.names or [n for n, peer in PEERS.items() if given.all or peer[2] is not None]
    for name in chosen:
        for objective in given.objective:
            run(
                folder,
                name,
                given.effort,
                given.attacker,
                objective,
                exact=not given.early_stop,
                key=given.key,
            )


if __name__ == "__main__":
    main()
