"""Linked tables: several tables about the same thing that share cells.

A margin printed in two tables is one unknown, not two, so what protects it in one must protect it
in the other. `LinkedTables` numbers the cells of all tables jointly, every cell once, and stacks
the equations of all tables over that numbering. The result is a `Table` again: whatever protects
or audits a table protects or audits linked tables.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.data.hierarchy import Hierarchy
from discreet.data.hierarchy_union import union
from discreet.data.table import Dimension, Table
from discreet.errors import InputError

__all__ = ["JointTable", "LinkedTables"]

Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class JointTable(Table):
    """The cells of several tables, each once, with the equations that hold within each table.

    Equations are not looked for across tables: a total of one table need not be the sum of what
    happens to be printed in another.
    """

    relations: sparse.csr_matrix | None = None

    @functools.cached_property
    def equations(self) -> sparse.csr_matrix:
        """Sparse matrix R with R @ value = 0, over all tables."""
        if self.relations is None:
            return sparse.csr_matrix((0, len(self)))
        return self.relations


@dataclasses.dataclass(frozen=True, eq=False)
class LinkedTables:
    """Several tables and their joint cells.

    Parameters
    ----------
    tables
        The tables as they were given.
    joint
        All cells, each once.
    places
        For each table the place of its cells in the joint table.

    Examples
    --------
    >>> import pandas as pd
    >>> by_sector = Table.from_cells(
    ...     pd.DataFrame({"sector": ["Total", "IT", "HC"], "n": [9, 5, 4]}), ["sector"], "n"
    ... )
    >>> by_region = Table.from_cells(
    ...     pd.DataFrame({"region": ["Total", "N", "S"], "n": [9, 6, 3]}), ["region"], "n"
    ... )
    >>> linked = LinkedTables.of([by_sector, by_region])
    >>> len(linked.joint), linked.joint.equations.shape[0]
    (5, 2)
    """

    tables: tuple[Table, ...]
    joint: JointTable
    places: tuple[Ints, ...]

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables)

    @classmethod
    def of(cls, tables: Sequence[Table], *, tolerance: float = 1e-6) -> LinkedTables:
        """Link tables by the names of their dimensions and codes.

        Two cells are the same if they agree in every code that is not a total. Their values must
        agree too, up to a relative tolerance.
        """
        if not tables:
            raise InputError("there are no tables to link", code="empty-table")
        kinds = {(table.statistic, table.measure) for table in tables}
        if len(kinds) > 1:
            raise InputError(
                "linked tables show different things: "
                + "; ".join(
                    f"{statistic} of {measure}" for statistic, measure in sorted(kinds, key=str)
                ),
                code="linked-measures-differ",
                hint="link tables of one measure",
            )
        dimensions = _joint_dimensions(tables)
        codes = [_joint_codes(table, dimensions) for table in tables]
        stacked = np.concatenate(codes)
        _, first, inverse = np.unique(
            _keys(stacked, dimensions), return_index=True, return_inverse=True
        )
        ends = np.cumsum([len(table) for table in tables])[:-1]
        places = tuple(np.split(inverse.ravel().astype(np.int64), ends))
        merged = _merge(tables, places, len(first))
        joint = JointTable(
            dimensions=dimensions,
            codes=stacked[first],
            statistic=tables[0].statistic,
            measure=tables[0].measure,
            confidential=tuple(dict.fromkeys(n for table in tables for n in table.confidential)),
            relations=_relations(tables, places, len(first)),
            whole=True if all(table.is_whole for table in tables) else None,
            steps=max(table.steps for table in tables),
            **merged,
        )
        _require_agreement(tables, places, joint, tolerance)
        return cls(tuple(tables), joint, places)

    def split(self, values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        """Return an array over the joint cells as one array per table."""
        return tuple(values[place] for place in self.places)

    @functools.cached_property
    def shared(self) -> npt.NDArray[np.bool_]:
        """Which joint cells are in more than one table."""
        times = np.zeros(len(self.joint), dtype=np.int64)
        for place in self.places:
            times[place] += 1
        return times > 1


def _joint_dimensions(tables: Sequence[Table]) -> tuple[Dimension, ...]:
    hierarchies: dict[str, list[Hierarchy]] = {}
    for table in tables:
        for dimension in table.dimensions:
            known = hierarchies.setdefault(dimension.name, [])
            for hierarchy in dimension.hierarchies or (Hierarchy.flat([], total=dimension.total),):
                if not any(_holds(other, hierarchy) for other in known):
                    known[:] = [other for other in known if not _holds(hierarchy, other)]
                    known.append(hierarchy)
    joint = []
    for name, several in hierarchies.items():
        codes, parents = union(several)
        joint.append(Dimension(name, codes, parents, tuple(several)))
    return tuple(joint)


def _holds(larger: Hierarchy, smaller: Hierarchy) -> bool:
    return set(smaller.pairs()) <= set(larger.pairs())


def _joint_codes(table: Table, dimensions: Sequence[Dimension]) -> npt.NDArray[np.int32]:
    codes = np.zeros((len(table), len(dimensions)), dtype=np.int32)  # 0: the total
    for place, dimension in enumerate(dimensions):
        if dimension.name in table.by:
            own = table.by.index(dimension.name)
            words = table.dimensions[own].codes
            index = np.array([dimension.index[word] for word in words], dtype=np.int32)
            codes[:, place] = index[table.codes[:, own]]
    return codes


def _keys(codes: npt.NDArray[np.int32], dimensions: Sequence[Dimension]) -> Ints:
    return Table(tuple(dimensions), codes, np.zeros(len(codes))).keys


def _merge(tables: Sequence[Table], places: Sequence[Ints], size: int) -> dict[str, Any]:
    """Return the arrays of the joint cells; of two opinions on a cell the more careful one."""
    merged: dict[str, Any] = {"value": np.zeros(size)}
    for table, place in zip(tables, places, strict=True):
        merged["value"][place] = table.value
    for name in ("count", "contributions", "contributors", "least", "most"):
        if all(getattr(table, name) is not None for table in tables):
            arrays = [getattr(table, name) for table in tables]
            if len({array.shape[1:] for array in arrays}) > 1:
                continue
            joint = np.zeros((size, *arrays[0].shape[1:]), dtype=arrays[0].dtype)
            for array, place in zip(arrays, places, strict=True):
                joint[place] = array
            merged[name] = joint
    for name in ("lower", "upper", "cost", "status"):
        if any(getattr(table, name) is not None for table in tables):
            joint = np.zeros(size, dtype=np.int8 if name == "status" else np.float64)
            for table, place in zip(tables, places, strict=True):
                array = getattr(table, name)
                if array is not None:
                    joint[place] = np.maximum(joint[place], array)
                elif name == "cost":
                    joint[place] = np.maximum(joint[place], np.abs(table.value))
            merged[name] = joint
    if any(table.never is not None for table in tables):
        merged["never"] = np.zeros(size, dtype=bool)
        for table, place in zip(tables, places, strict=True):
            if table.never is not None:
                merged["never"][place[table.never]] = True
    return merged


def _relations(tables: Sequence[Table], places: Sequence[Ints], size: int) -> sparse.csr_matrix:
    blocks = []
    for table, place in zip(tables, places, strict=True):
        own = table.equations.tocoo()
        shape = (own.shape[0], size)
        blocks.append(sparse.csr_matrix((own.data, (own.row, place[own.col])), shape=shape))
    stacked = sparse.vstack(blocks, format="csr")
    stacked.sort_indices()
    # An equation among shared margins is in both tables; it is kept once.
    seen: set[bytes] = set()
    kept = []
    for row in range(stacked.shape[0]):
        at = slice(stacked.indptr[row], stacked.indptr[row + 1])
        mark = stacked.indices[at].tobytes() + stacked.data[at].tobytes()
        if mark not in seen:
            seen.add(mark)
            kept.append(row)
    distinct: sparse.csr_matrix = stacked[kept]
    return distinct


def _require_agreement(
    tables: Sequence[Table], places: Sequence[Ints], joint: JointTable, tolerance: float
) -> None:
    for table, place in zip(tables, places, strict=True):
        gap = np.abs(table.value - joint.value[place])
        wrong = np.flatnonzero(gap > tolerance * np.maximum(np.abs(table.value), 1.0))
        if wrong.size:
            name = " × ".join(joint.labels(int(place[wrong[0]])))
            raise InputError(
                f"{wrong.size} cells have different values in different tables, such as {name}",
                code="linked-values-differ",
                hint="correct the tables, or raise the tolerance",
            )
