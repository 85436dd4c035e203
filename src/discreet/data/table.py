"""A table: cells over crossed attributes, and the equations between them.

Only cells that exist are held; a combination without a cell is an empty one and counts as a known
zero. The equations (parent = sum of children, for every hierarchy and every combination of the
other codes) are a sparse matrix built once, without ever forming the full cube.
"""

from __future__ import annotations

import dataclasses
import functools
import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.data.cells import Cells, Status
from discreet.data.hierarchy import Hierarchy
from discreet.data.hierarchy_union import union
from discreet.errors import InputError

__all__ = ["Dimension", "Status", "Table"]

#: Cells that a notebook shows.
_SHOWN = 200

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False)
class Dimension:
    """One attribute of a table: its codes and how they add up.

    Examples
    --------
    >>> sex = Dimension.of("sex", Hierarchy.flat(["f", "m"]))
    >>> sex.codes, sex.index["m"]
    (('Total', 'f', 'm'), 2)
    """

    name: str
    codes: tuple[str, ...]
    #: One row per hierarchy: for each code the place of its parent, −1 where it has none there.
    parents: npt.NDArray[np.int32]
    hierarchies: tuple[Hierarchy, ...] = ()
    #: Whether the codes were declared, and not found in the records.
    declared: bool = True

    @classmethod
    def of(
        cls, name: str, hierarchies: Hierarchy | Sequence[Hierarchy], *, declared: bool = True
    ) -> Dimension:
        """Make a dimension from one hierarchy or several over the same attribute."""
        several = (hierarchies,) if isinstance(hierarchies, Hierarchy) else tuple(hierarchies)
        codes, parents = union(several)
        return cls(name, codes, parents, several, declared)

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """Place of each code."""
        return {code: i for i, code in enumerate(self.codes)}

    @property
    def total(self) -> str:
        """The code of the total."""
        return self.codes[0]

    @functools.cached_property
    def splits(self) -> npt.NDArray[np.int32]:
        """`parents` with each way to split a code kept once, where hierarchies agree on it."""
        if len(self.parents) == 1:
            return self.parents
        kept = self.parents.copy()
        seen: set[tuple[int, bytes]] = set()
        for row in kept:
            for parent in np.unique(row[row >= 0]):
                below = np.flatnonzero(row == parent)
                if (int(parent), below.tobytes()) in seen:
                    row[below] = -1
                seen.add((int(parent), below.tobytes()))
        return kept

    @functools.cached_property
    def is_leaf(self) -> Bools:
        """Which codes have no children in any hierarchy."""
        leaf = np.ones(len(self.codes), dtype=bool)
        leaf[self.parents[self.parents >= 0]] = False
        return leaf


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """Cells over crossed attributes.

    All arrays have one entry per cell. `lower` and `upper` are protection levels: how far below
    and above its value a sensitive cell must remain possible to an attacker. `contributions` are
    the largest contributions, largest first; `contributors` the units that made them, as numbers
    that mean nothing outside the table (−1: nobody).

    Examples
    --------
    >>> import pandas as pd
    >>> cells = pd.DataFrame(
    ...     {"sector": ["Total", "IT", "Fin"], "value": [10.0, 7.0, 3.0], "count": [5, 3, 2]}
    ... )
    >>> table = Table.from_cells(cells, by=["sector"], value="value", count="count")
    >>> table
    Table(3 cells over sector, 1 equations)
    >>> (table.equations @ table.value).tolist()
    [0.0]
    """

    dimensions: tuple[Dimension, ...]
    #: (cells, dimensions): place of the cell's code in each dimension.
    codes: npt.NDArray[np.int32]
    value: Floats
    count: Ints | None = None
    contributions: Floats | None = None
    contributors: Ints | None = None
    lower: Floats | None = None
    upper: Floats | None = None
    cost: Floats | None = None
    status: npt.NDArray[np.int8] | None = None
    #: What the value is: "sum", "count" or "mean" of the measure.
    statistic: str = "sum"
    measure: str | None = None
    #: Sum of the absolute contributions, where some are negative.
    magnitude: Floats | None = None
    #: The largest contribution among those who asked for protection.
    requested: Floats | None = None
    #: Cells that stay published (status P of tau-Argus).
    never: Bools | None = None
    #: Attributes, and the measure, that nobody may learn of a person.
    confidential: tuple[str, ...] = ()
    #: Whether values are whole numbers, also where withheld; none: if they count something.
    whole: bool | None = None
    #: Of sums of a confidential measure with few values, such as 0 and 1 or a score: what each cell
    #: would be if everybody in it had the smallest one, and the largest one.
    least: Floats | None = None
    most: Floats | None = None
    #: How many times as far apart those two are as any two values must be.
    steps: float = 1.0

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        over = " × ".join(dimension.name for dimension in self.dimensions)
        return f"Table({len(self):,} cells over {over}, {self.equations.shape[0]:,} equations)"

    def _repr_html_(self) -> str:
        """Show the first cells in notebooks, and say how many there are."""
        frame = self.to_frame().head(_SHOWN)
        left = len(self) - len(frame)
        more = f"<p>The first {len(frame):,} of {len(self):,} cells.</p>" if left else ""
        return f"<p>{html.escape(repr(self))}</p>{frame.to_html(index=False, na_rep='–')}{more}"

    @classmethod
    def from_cells(
        cls,
        frame: Any,
        by: Sequence[str],
        value: str,
        *,
        count: str | None = None,
        hierarchies: Mapping[str, Hierarchy | Sequence[Hierarchy]] | None = None,
        contributions: Sequence[str] = (),
        primary: str | None = None,
        status: str | None = None,
        lower: str | None = None,
        upper: str | None = None,
        cost: str | None = None,
        never: str | None = None,
        statistic: str = "sum",
        total: str = "Total",
        confidential: Sequence[str] = (),
    ) -> Self:
        """Make a table from ready-made cells, one row each, totals included.

        A dimension without a hierarchy is flat below `total`; `never` is true for cells that stay
        published, and `confidential` names the attributes that nobody may learn of a person. Any:
        the frame may be of any library that narwhals reads.
        """
        source = Cells.of(frame)
        special = (count, primary, status, lower, upper, cost, never)
        source.require([*by, value, *contributions, *(n for n in special if n is not None)], by)
        given = hierarchies or {}
        dimensions, codes = [], []
        for name in by:
            words, places = source.codes(name)
            dimension = (
                Dimension.of(name, given[name]) if name in given else _flat(name, words, total)
            )
            unknown = sorted(set(words) - set(dimension.codes))
            if unknown:
                raise InputError(
                    f"dimension {name!r} has {len(unknown)} codes that its hierarchy lacks, such as "
                    + ", ".join(repr(code) for code in unknown[:3]),
                    code="hierarchy-not-covering",
                    hint="add them to the hierarchy",
                    column=name,
                    missing=unknown[:100],
                )
            dimensions.append(dimension)
            index = np.array([dimension.index[word] for word in words], dtype=np.int32)
            codes.append(index[places])
        largest = [source.numbers(name) for name in contributions]
        flags = None
        if status is not None:
            flags = source.statuses(status)
        elif primary is not None:
            flags = np.where(source.flags(primary), np.int8(Status.PRIMARY), np.int8(Status.SAFE))
        table = cls(
            dimensions=tuple(dimensions),
            codes=np.stack(codes, axis=1),
            value=source.numbers(value),
            count=None if count is None else source.counts(count),
            contributions=_by_size(np.stack(largest, axis=1)) if largest else None,
            lower=None if lower is None else source.numbers(lower, least=0.0),
            upper=None if upper is None else source.numbers(upper, least=0.0),
            cost=None if cost is None else source.numbers(cost),
            status=flags,
            statistic=statistic,
            never=None if never is None else source.flags(never),
            confidential=tuple(confidential),
        )
        table._require_distinct()
        return table

    @classmethod
    def from_argus(
        cls, path: str | Path, metadata: str | Path | None = None, *, value: str | None = None
    ) -> Self:
        """Read a tau-Argus tabular file and its `.rda` metadata.

        Parameters
        ----------
        metadata
            The `.rda` file; by default the one beside the table.
        value
            Name of the numeric variable to take, where there are several.
        """
        from discreet.data.argus import read_argus

        return cls.from_cells(**read_argus(path, metadata, value=value))

    @property
    def by(self) -> tuple[str, ...]:
        """Names of the crossed attributes."""
        return tuple(dimension.name for dimension in self.dimensions)

    @functools.cached_property
    def is_whole(self) -> bool:
        """Whether it counts things, so that every value is a whole number, also where withheld.

        Weighted counts are not. A table whose values are its frequencies counts, whatever it is
        called.
        """
        known = self.value[np.isfinite(self.value)]
        if (known != np.round(known)).any():
            return False
        if self.whole is not None:
            return self.whole
        counts = self.count is not None and np.array_equal(self.value, self.count)
        return self.statistic == "count" or counts

    @functools.cached_property
    def keys(self) -> Ints:
        """One number per cell, in mixed radix over the codes."""
        sizes = [len(dimension.codes) for dimension in self.dimensions]
        if float(np.prod(np.array(sizes, dtype=np.float64))) >= 2.0**62:
            raise InputError(
                "the table has more than 2**62 combinations of codes",
                code="table-too-large",
                hint="cross fewer attributes",
            )
        key = np.zeros(len(self.codes), dtype=np.int64)
        for place, size in enumerate(sizes):
            key = key * size + self.codes[:, place]
        return key

    @functools.cached_property
    def _sorted(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.keys, kind="stable")
        return self.keys[order], order

    def find(self, keys: Ints) -> Ints:
        """Return the cells with these keys, −1 where there is none."""
        ordered, order = self._sorted
        at = np.searchsorted(ordered, keys)
        at[at == len(ordered)] = 0
        return (
            np.where(ordered[at] == keys, order[at], -1) if len(ordered) else np.full(len(keys), -1)
        )

    def cell(self, *codes: str) -> int:
        """Return the place of the cell with these codes."""
        key = 0
        for dimension, code in zip(self.dimensions, codes, strict=True):
            if code not in dimension.index:
                raise InputError(
                    f"dimension {dimension.name!r} has no code {code!r}",
                    code="unknown-code",
                    column=dimension.name,
                )
            key = key * len(dimension.codes) + dimension.index[code]
        found = int(self.find(np.array([key]))[0])
        if found < 0:
            raise InputError(f"the table has no cell {codes}", code="unknown-cell")
        return found

    def with_empty(self, codes: npt.NDArray[np.int32]) -> Self:
        """Return the table with cells of zero added for combinations of codes that it lacks."""
        codes = np.unique(codes, axis=0)
        found = self.find(Table(self.dimensions, codes, np.zeros(len(codes))).keys)
        added = codes[found < 0]
        if not len(added):
            return self
        changes: dict[str, Any] = {"codes": np.concatenate([self.codes, added])}
        for field in dataclasses.fields(self):
            array = getattr(self, field.name)
            if field.name == "codes" or not isinstance(array, np.ndarray):
                continue
            nothing = -1 if field.name == "contributors" else 0
            shape = (len(added), *array.shape[1:])
            more = np.full(shape, nothing, dtype=array.dtype)
            changes[field.name] = np.concatenate([array, more])
        # Cells that are added must not be told by their place.
        order = np.argsort(Table(self.dimensions, changes["codes"], changes["value"]).keys)
        return self.replace(**{name: array[order] for name, array in changes.items()})

    def labels(self, cell: int) -> tuple[str, ...]:
        """Return the codes of a cell, as people read them."""
        return tuple(d.codes[c] for d, c in zip(self.dimensions, self.codes[cell], strict=True))

    @functools.cached_property
    def equations(self) -> sparse.csr_matrix:
        """Sparse matrix R with R @ value = 0: +1 for a total, −1 for each of its parts.

        One row for every existing cell that is a total of existing cells, per dimension and
        hierarchy.
        """
        rows, columns, signs, height = [], [], [], 0
        radix = 1
        for place in range(len(self.dimensions) - 1, -1, -1):
            dimension = self.dimensions[place]
            for parents in dimension.splits:
                above = parents[self.codes[:, place]].astype(np.int64)
                parts = np.flatnonzero(above >= 0)
                shift = (above[parts] - self.codes[parts, place]) * radix
                totals = self.find(self.keys[parts] + shift)
                parts, totals = parts[totals >= 0], totals[totals >= 0]
                distinct, row = np.unique(totals, return_inverse=True)
                rows += [np.arange(len(distinct)) + height, row + height]
                columns += [distinct, parts]
                signs += [np.ones(len(distinct)), -np.ones(len(parts))]
                height += len(distinct)
            radix *= len(dimension.codes)
        shape = (height, len(self))
        if not rows:
            return sparse.csr_matrix(shape)
        entries = (np.concatenate(signs), (np.concatenate(rows), np.concatenate(columns)))
        return sparse.csr_matrix(entries, shape=shape)

    def require_additive(self, tolerance: float = 1e-3, *, least: float = 0.0) -> None:
        """Say which totals differ from the sum of their parts, relative to what is summed.

        Differences up to `least` are never meant.
        """
        gap = np.abs(self.equations @ self.value)
        scale = abs(self.equations) @ np.abs(self.value)
        wrong = np.flatnonzero(gap > np.maximum(tolerance * np.maximum(scale, 1e-12), least))
        if wrong.size:
            names = [self._equation_name(int(row)) for row in wrong[:5]]
            raise InputError(
                f"{wrong.size} totals differ from the sum of their parts, such as "
                + "; ".join(names),
                code="table-not-additive",
                hint="correct the cells, or the hierarchy that says what adds up to them",
                cells=names,
            )

    def _equation_name(self, row: int) -> str:
        entries = self.equations[[row]].tocoo()
        total = int(entries.col[entries.data > 0][0])
        return " × ".join(self.labels(total))

    def replace(self, **changes: Any) -> Self:
        """Return the table with some arrays replaced."""
        return dataclasses.replace(self, **changes)

    def to_frame(self) -> Any:
        """Return the cells as a pandas frame: codes, value and whatever else is known.

        Any: pandas is not on the start path.
        """
        import pandas as pd

        data: dict[str, Any] = {
            dimension.name: np.array(dimension.codes, dtype=object)[self.codes[:, place]]
            for place, dimension in enumerate(self.dimensions)
        }
        data["value"] = self.value
        for name in ("count", "lower", "upper", "cost"):
            if getattr(self, name) is not None:
                data[name] = getattr(self, name)
        if self.contributions is not None:
            for rank in range(self.contributions.shape[1]):
                data[f"max{rank + 1}"] = self.contributions[:, rank]
        if self.status is not None:
            data["status"] = [Status(int(code)).word for code in self.status]
        return pd.DataFrame(data)

    def _require_distinct(self) -> None:
        ordered, order = self._sorted
        twice = np.flatnonzero(ordered[1:] == ordered[:-1])
        if twice.size:
            name = " × ".join(self.labels(int(order[twice[0]])))
            raise InputError(
                f"{twice.size} cells are given twice, such as {name}",
                code="duplicate-cells",
                hint="give each combination of codes one row",
            )


def _by_size(contributions: Floats) -> Floats:
    """Return contributions as rules read them: largest first in size, whatever the columns' order."""
    order = np.argsort(-np.abs(contributions), axis=1, kind="stable")
    return np.take_along_axis(contributions, order, axis=1)


def _flat(name: str, values: Sequence[str], total: str) -> Dimension:
    leaves = [code for code in values if code != total]
    if not leaves:
        return Dimension(name, (total,), np.array([[-1]], dtype=np.int32), declared=False)
    return Dimension.of(name, Hierarchy.flat(leaves, total=total), declared=False)
