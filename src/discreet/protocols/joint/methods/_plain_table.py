"""A joint table as one curator makes it, with every record in plain sight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol as Interface

import numpy as np
import numpy.typing as npt

from discreet.audit.rules import Rule
from discreet.audit.rules.minimum_frequency import MinimumFrequency
from discreet.audit.rules.p_percent import PPercent
from discreet.data.dataset import Dataset, read
from discreet.errors import InputError
from discreet.protocols.joint.asked import Asked
from discreet.protocols.joint.declaration import JointPolicy, MeasureBound, PartyEntry
from discreet.protocols.joint.demand import Demand
from discreet.protocols.joint.judging import audiences
from discreet.protocols.joint.protocol import Inputs
from discreet.protocols.joint.summary import selected, summarize, summarize_withheld

Cell = tuple[str, ...]
#: Of each owner its contributions: a line for each record, in whole units of the measures.
Parts = Sequence[npt.NDArray[np.int64]]
_DECIMALS = 2


class Table(Interface):
    """What is looked at of a joint table."""

    @property
    def by(self) -> tuple[str, ...]:
        """Its keys."""

    @property
    def measures(self) -> tuple[str, ...]:
        """What is summed."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that are counted on."""

    def demand(self, policy: JointPolicy) -> Demand:
        """Return what is asked of the parties of a policy."""


def agreed(table: Table, inputs: Inputs) -> JointPolicy:
    """Return a policy for records in plain sight: codes and bounds are read from them."""
    owners = tuple(inputs)
    nodes = (*owners, "node 1", "node 2")[:3]
    columns = [np.asarray(one, dtype=np.float64).T for one in inputs.values()]
    width = len(table.by)
    keys = {
        name: tuple(f"{code:g}" for code in sorted({v for one in columns for v in one[place]}))
        for place, name in enumerate(table.by)
    }
    largest = {
        name: max(float(np.ceil(one[width + place].sum())) for one in columns)
        for place, name in enumerate(table.measures)
    }
    return JointPolicy(
        relation="records",
        parties={
            name: PartyEntry(f"{name}.crt", f"127.0.0.1:{7000 + place}")
            for place, name in enumerate(dict.fromkeys([*owners, *nodes, "analyst"]))
        },
        owners=owners,
        nodes=nodes,
        analysts=("analyst",),
        keys=keys,
        rules=table.rules or (MinimumFrequency(3), PPercent(15)),
        measures={n: MeasureBound(max(of, 1.0), _DECIMALS) for n, of in largest.items()},
        conditions={name: "text" if name in keys else "number" for name in (*keys, *largest)},
    )


def records(table: Table, inputs: Inputs) -> dict[str, Dataset]:
    """Return each owner's records: first the codes of the keys, then the measures."""
    import pyarrow as pa

    names = (*table.by, *table.measures)
    found = {}
    for owner, numbers in inputs.items():
        columns = np.asarray(numbers, dtype=np.float64).T
        if len(columns) != len(names):
            raise InputError(
                f"a table of {len(names)} columns, and {len(columns)} of records",
                code="inputs-differ",
                hint="give one column of codes for each key, then one for each measure",
            )
        arrays = {
            name: [f"{code:g}" for code in column] if place < len(table.by) else column
            for place, (name, column) in enumerate(zip(names, columns, strict=True))
        }
        found[owner] = read(pa.table(arrays), name="records")
    return found


def seated(table: Table, inputs: Inputs) -> dict[str, Asked]:
    """Return what each party is asked for, with an owner's summaries."""
    policy = agreed(table, inputs)
    demand, held = table.demand(policy), records(table, inputs)

    def asked(name: str) -> Asked:
        inputs = summarize(held[name], demand, policy) if name in held else None
        return Asked(
            policy,
            demand,
            inputs,
            lambda level, cells: summarize_withheld(held[name], demand, policy, level, cells),
        )

    return {name: asked(name) for name in {*policy.owners, *policy.nodes}}


def tabulated(
    demand: Demand, policy: JointPolicy, table: Table, inputs: Inputs
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return which lines are withheld, and what is opened of the others."""
    if demand.margins:
        raise InputError(
            "which further cells protect margins is chosen on shares, by no formula",
            code="joint-unsupported",
            hint="audit what was opened: discreet audit FOLDER/cells.csv",
        )
    held = [_cells(one, demand, policy) for one in records(table, inputs).values()]
    none = np.zeros((0, len(demand.judged)), dtype=np.int64)

    def inside(cells: Sequence[Cell]) -> Parts:
        return [np.concatenate([none, *(one.get(cell, none) for cell in cells)]) for one in held]

    cells = demand.cells(policy)
    whole = [inside([cell]) for cell in cells]
    flags = [_sensitive(one, policy) for one in whole]
    unresolved = {cell for cell, flag in zip(cells, flags, strict=True) if flag}
    for level in demand.levels:
        opened = set()
        for group in demand.groups(policy, level):
            withheld = [cell for cell in sorted(unresolved) if cell[:level] == group]
            flags.append(_sensitive(inside(withheld), policy, hidden=len(withheld)))
            whole.append(inside([cell for cell in cells if cell[:level] == group]))
            opened |= set() if flags[-1] else {group}
        unresolved = {cell for cell in unresolved if cell[:level] not in opened}
    found = [np.concatenate(one) for one, flag in zip(whole, flags, strict=True) if not flag]
    values = [
        [len(one) if not name else int(one[:, demand.judged.index(name)].sum()) for one in found]
        for _, name in demand.opened()
    ]
    return np.array(flags, dtype=np.bool_), np.array(values, dtype=np.int64)


def _cells(
    data: Dataset, demand: Demand, policy: JointPolicy
) -> Mapping[Cell, npt.NDArray[np.int64]]:
    """Return an owner's contributions cell by cell."""
    chosen = selected(data, demand).arrow([*demand.keys, *demand.judged])
    scales = [policy.measures[name].scale for name in demand.judged]
    listed = [chosen.column(name).to_pylist() for name in (*demand.keys, *demand.judged)]
    width = len(demand.keys)
    found: dict[Cell, list[list[int]]] = {}
    for line in zip(*listed, strict=True) if listed else [()] * chosen.num_rows:
        amounts = [round(v * scale) for v, scale in zip(line[width:], scales, strict=True)]
        found.setdefault(tuple(line[:width]), []).append(amounts)
    return {
        cell: np.array(lines, dtype=np.int64).reshape(len(lines), len(scales))
        for cell, lines in found.items()
    }


def _sensitive(parts: Parts, policy: JointPolicy, *, hidden: int | None = None) -> bool:
    """Return whether a rule finds a cell sensitive for anybody; `hidden` cells make up a total."""
    return any(
        _tells(np.concatenate([parts[owner] for owner in group]), policy.rules, hidden)
        for group in audiences(len(parts), policy.collusion)
    )


def _tells(lines: npt.NDArray[np.int64], rules: Sequence[Rule], hidden: int | None) -> bool:
    count, sums = len(lines), lines.sum(axis=0).tolist()
    if hidden is not None and count and (count <= hidden or not all(sums)):
        return True
    for rule in rules:
        forms = rule.inequalities()
        for place in range(len(sums)) if any(form.total for form in forms) else [None]:
            amounts = [] if place is None else sorted(lines[:, place].tolist(), reverse=True)
            values = [
                form.constant
                + form.count * count
                + form.total * sum(amounts)
                + sum(c * x for c, x in zip(form.largest, amounts, strict=False))
                for form in forms
            ]
            if max(values) < 0:
                return True
    return False
