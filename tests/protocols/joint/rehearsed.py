"""A joint table of three owners in this process, without TLS or ledgers: fast, and seen whole."""

from __future__ import annotations

import queue
import threading

import numpy as np
import pandas as pd

import discreet as dc
from discreet.protocols.joint.computing import TableRun
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.joint.demand import read_demand
from discreet.protocols.joint.rehearsal import QueueWire
from discreet.protocols.joint.result import assembled
from discreet.protocols.joint.summary import summarize, summarize_withheld
from discreet.randomness import Randomness
from discreet.registry import build


def policy_for(owners, **stated):
    """A policy of some owners; nobody listens and no certificate is read."""
    names = [f"owner{place + 1}" for place in range(owners)]
    nodes = [*names, "node1", "node2"][:3]
    parties = {
        name: {"certificate": f"{name}.crt", "address": f"127.0.0.1:{7000 + place}"}
        for place, name in enumerate([*dict.fromkeys([*names, *nodes]), "analyst"])
    }
    basic = {"relation": "stays", "owners": names, "nodes": nodes, "analysts": ["analyst"],
             "parties": parties, "rules": ["minimum-frequency"], "keys": {}}  # fmt: skip
    return build(JointPolicy, {**basic, **stated})


def rehearse_table(frames, sql, policy, *, views=None, rng=None, **wanted):
    """Return the table that owners with these records open, and what they announced to open.

    `views` is filled with what arrived at each party.
    """
    source = rng or Randomness.secure()
    demand = read_demand(sql, policy, **wanted)
    data = [dc.read(frame, name="stays") for frame in frames]
    names = list(dict.fromkeys([*policy.owners, *policy.nodes]))
    queues = {(a, b): queue.Queue() for a in names for b in names if a != b}
    wires = {name: QueueWire(name, queues, None, keep=views is not None) for name in names}
    results, announced, broken = {}, {name: [] for name in names}, []
    sources = {name: source.spawn() for name in names}

    def work(name, own):
        try:
            results[name] = TableRun(
                wires[name],
                policy,
                demand,
                name,
                inputs=None if own is None else summarize(own, demand, policy),
                withheld=lambda level, cells: summarize_withheld(own, demand, policy, level, cells),
                rng=sources[name],
                before_opening=lambda meaning, cells: announced[name].append(meaning),
            ).run()
        except BaseException as error:
            broken.append(error)
            raise

    held = dict(zip(policy.owners, data, strict=True))
    threads = [threading.Thread(target=work, args=(n, held.get(n)), daemon=True) for n in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3600)  # large tables with margins take half an hour on a busy machine
    assert not broken, broken
    if views is not None:
        views.update({name: wire.view for name, wire in wires.items()})
    opened = results[policy.nodes[0]]
    transcripts = {name: wires[name].transcript.to_dict() for name in policy.nodes}
    table = assembled(demand, policy, opened.withheld, opened.values, transcripts)
    return table, announced


def instance_records(folder, name, *, seed=0, owners=3):
    """Records like those behind a stored table, dealt to owners; with trees of its keys."""
    place = folder / "tables" / name
    cells = pd.read_csv(place / "cells.csv", dtype=str, keep_default_na=False)
    keys = list(cells.columns[: list(cells.columns).index("value")])
    keys_codes, hierarchies, rng = {}, {}, np.random.default_rng(seed)
    for key in keys:
        pairs = pd.read_csv(place / f"hier_{key}.csv", dtype=str, keep_default_na=False)
        root = pairs.child[pairs.parent == ""].iloc[0]
        parents = set(pairs.parent) - {""}
        keys_codes[key] = [code for code in pairs.child if code not in parents]
        hierarchies[key] = {one: list(pairs.child[pairs.parent == one]) for one in parents - {root}}
    rows = []
    for cell in cells.itertuples(index=False):
        codes = [getattr(cell, key) for key in keys]
        if any(code not in keys_codes[key] for key, code in zip(keys, codes, strict=True)):
            continue
        count, value = int(float(cell.freq)), float(cell.value)
        largest = [float(x) for x in (cell.max1, cell.max2) if x != ""][: min(count, 2)]
        rest = max(value - sum(largest), 0.0)
        parts = largest + [rest / (count - 2)] * (count - 2) if count > 2 else largest
        rows += [(*codes, round(part)) for part in parts]
    frame = pd.DataFrame(rows, columns=[*keys, "value"])
    whose = rng.integers(0, owners, len(frame))
    frames = [frame[whose == one].reset_index(drop=True) for one in range(owners)]
    return keys, keys_codes, hierarchies, frames
