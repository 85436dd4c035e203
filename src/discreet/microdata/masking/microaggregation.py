"""Microaggregation: groups of at least k like records, each told as its average."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.data.schema import Role, Schema, Type
from discreet.errors import InfeasibleError, InputError
from discreet.microdata.columns import Numbers, codes, is_date, is_number, numbers
from discreet.microdata.masking._base import ColumnMasking, require_covered
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["Microaggregation", "partition"]

Places = npt.NDArray[np.int64]
Adjust = Callable[[Places, Numbers, Places], Places]
#: Mean and standard deviation of a column.
Scale = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Microaggregation(ColumnMasking):
    """Group records into groups of at least k and replace their values by the group's.

    Numbers and dates become the mean, which keeps the column's; categories the most frequent value. On
    all quasi-identifiers together it gives k-anonymity. Numbers are standardised (sample standard
    deviation); categories that differ are at distance 1, or, with a hierarchy, at the share of
    levels on which they differ, and squared distances add up over the columns.

    `mdav` is exact Maximum Distance to Average Vector; `variable` lets groups grow to 2k−1 (V-MDAV);
    `univariate` takes each column by itself, and optimally (Hansen and Mukherjee). `search` improves
    the partition by moves, exchanges and regrouping until that no longer helps quickly, or for
    `seconds`, after which the result depends on the machine's speed too.

    Records are grouped with records that miss the same columns; where fewer than k do, those
    columns become missing for them. The result does not depend on the order of the rows.

    Files of more than 250,000 records are sorted into blocks of about 20,000 by their engine and
    grouped block by block, which loses a little at the borders.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table({"age": [20, 22, 60, 64], "salary": [10, 20, 50, 70]})
    >>> method = Microaggregation(["age", "salary"], k=2)
    >>> method.apply(rows, schema=None, rng=Randomness.seeded(1))["salary"].to_pylist()
    [15.0, 15.0, 60.0, 60.0]
    """

    name: ClassVar[str] = "microaggregation"
    reference: ClassVar[str] = (
        "Domingo-Ferrer and Mateo-Sanz 2002; Domingo-Ferrer and Torra 2005; "
        "Solanas and Martínez-Ballesté 2006; Hansen and Mukherjee 2003"
    )

    k: int = parameter(3, help="fewest records in a group", low=2)
    variant: str = parameter(
        "mdav", help="how groups are made", choices=("mdav", "variable", "univariate")
    )
    search: bool = parameter(False, help="improve the groups by local search")
    seconds: float = parameter(0.0, help="processor time for a longer search", low=0)
    gamma: float = parameter(0.2, help="how readily variable groups grow", low=0)

    def stronger(self) -> Microaggregation | None:
        """Return the method with k one step further."""
        if self.k > 1000:
            return None
        return dataclasses.replace(self, k=self.k + max(1, self.k // 2))

    def rehearse(self, dataset: Dataset) -> None:
        """Refuse fewer records than a group needs, and categories that a hierarchy lacks."""
        super().rehearse(dataset)
        self._require_enough(dataset.count)
        for name in self.columns:
            require_covered(dataset, name)

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the aggregated columns."""
        self._require_enough(rows.num_rows)
        if self.variant == "univariate":
            masked: dict[str, pa.Array] = {}
            for name in self.columns:
                masked |= self.aggregate(rows.select([name]), schema)
            return masked
        return self.aggregate(rows.select(list(self.columns)), schema)

    def mask_in_engine(self, held: Dataset, *, rng: Randomness) -> Dataset | None:
        """Return the records grouped in sorted blocks, or nothing where points in time are grouped."""
        import pyarrow as pa

        from discreet.data.engines.changes import joined
        from discreet.microdata.masking._sorted_blocks import in_blocks

        self._require_enough(len(held))
        types: dict[str, pa.DataType] = {}
        scales: dict[str, Scale] = {}
        for name in self.columns:
            types[name] = kind = held.relation.schema.field(name).type
            column = _Column.of(pa.chunked_array([], kind), name, held.schema)
            if isinstance(column, _DateColumn):
                if pa.types.is_timestamp(kind):
                    return None
                scales[name] = _days(held, name)
            elif isinstance(column, _NumberColumn):
                types[name] = pa.float64()
                scales[name] = _figures(held, name)

        def aggregate(rows: pa.Table) -> dict[str, pa.Array]:
            return self.aggregate(rows, held.schema, scales=scales)

        relation = held.relation
        together = [(name,) for name in types] if self.variant == "univariate" else [tuple(types)]
        for names in together:
            chosen = {name: types[name] for name in names}
            axes = [name for name in names if name in scales]
            found = in_blocks(held.relation, chosen, axes, aggregate, k=self.k)
            relation = joined(relation, found)
        return held.replace(relation=relation)

    def _require_enough(self, records: int) -> None:
        if records < self.k:
            raise InfeasibleError(
                f"groups of {self.k} need at least {self.k} records, and there are {records}",
                code="k-too-large",
                hint=f"write k of at most {records}" if records > 1 else "add records",
                k=self.k,
                feasible=records,
            )

    def aggregate(
        self,
        rows: pa.Table,
        schema: Schema | None,
        adjust: Adjust | None = None,
        scales: Mapping[str, Scale] | None = None,
    ) -> dict[str, pa.Array]:
        """Return the aggregated columns; `adjust` may merge groups before they are averaged.

        It gets the records' places, their points and their groups, and returns the groups.
        `scales` are those of the whole file where these rows are a part of it.
        """
        columns = [_Column.of(rows.column(name), name, schema) for name in rows.column_names]
        for name, column in zip(rows.column_names, columns, strict=True):
            if scales and isinstance(column, _NumberColumn):
                column.mean, column.deviation = scales[name]
        known = np.stack([~column.missing for column in columns], axis=1)
        patterns, pattern = np.unique(known, axis=0, return_inverse=True)
        for number, present in enumerate(patterns):
            places = np.flatnonzero(pattern.ravel() == number)
            used = [column for column, is_known in zip(columns, present, strict=True) if is_known]
            if not used:
                continue
            if places.size < self.k:
                for column in used:
                    column.withhold(places)
                continue
            groups = self._groups(used, places, rows.num_rows)
            if adjust is not None:
                points = np.concatenate([column.embedded(places) for column in used], axis=1)
                groups = adjust(places, points, groups)
            for column in used:
                column.aggregate(places, groups)
        return {
            name: column.result() for name, column in zip(rows.column_names, columns, strict=True)
        }

    def _groups(self, columns: list[_Column], places: Places, rows: int) -> Places:
        search = self.search or self.seconds > 0
        categories = [column for column in columns if isinstance(column, _CategoryColumn)]
        if self.variant == "mdav" and not search and categories:
            figures = [c.embedded(places) for c in columns if not isinstance(c, _CategoryColumn)]
            coded = [c.coded(places) for c in categories]
            return partition_mixed(
                np.concatenate([np.empty((places.size, 0)), *figures], axis=1),
                np.concatenate([codes for codes, _ in coded], axis=1),
                np.concatenate([share for _, share in coded]),
                self.k,
            )
        return partition(
            np.concatenate([column.embedded(places) for column in columns], axis=1),
            self.k,
            variant=self.variant,
            search=search,
            seconds=self.seconds * places.size / rows,
            gamma=self.gamma,
        )


def partition_mixed(points: Numbers, codes: Places, share: Numbers, k: int) -> Places:
    """Return the group of each record of numbers and categories, by MDAV.

    `share` is the squared distance between two different categories of each column of codes.

    >>> codes = np.array([[0], [1], [0], [1]])
    >>> partition_mixed(np.empty((4, 0)), codes, np.ones(1), 2).tolist()
    [0, 1, 0, 1]
    """
    from discreet.microdata.masking._mixed_mdav import mixed_mdav

    order = np.lexsort((*codes.T[::-1], *points.T[::-1]))
    # Copies, which the kernel rearranges; small codes, so that many are compared at once.
    figures = np.ascontiguousarray(points[order].T)
    found = mixed_mdav(figures, np.ascontiguousarray(codes[order].T, dtype=np.int32), share, k)
    groups = np.empty(found.size, np.int64)
    groups[order] = np.unique(found, return_inverse=True)[1].ravel()
    return groups


def partition(
    points: Numbers,
    k: int,
    *,
    variant: str = "mdav",
    search: bool = False,
    seconds: float = 0.0,
    gamma: float = 0.2,
) -> Places:
    """Return the group of each record, groups of at least k, whatever the order of the rows.

    >>> partition(np.array([[0.0], [9.0], [1.0], [10.0]]), 2).tolist()
    [0, 1, 0, 1]
    """
    from discreet.microdata.masking import _local_search, _mdav

    order = np.lexsort(points.T[::-1])
    inside = np.ascontiguousarray(points[order], dtype=np.float64)
    if variant == "univariate" and inside.shape[1] == 1:
        found = _mdav.hansen_mukherjee(inside[:, 0].copy(), k)
    elif variant == "variable":
        found = _mdav.variable_mdav(inside, k, gamma)
    else:
        found = _mdav.mdav(inside, k)
    if search and not (variant == "univariate" and inside.shape[1] == 1):
        found = _local_search.improve(inside, found, k, seconds=seconds)
    groups = np.empty(found.size, np.int64)
    groups[order] = np.unique(found, return_inverse=True)[1].ravel()
    return groups


def _figures(held: Dataset, name: str) -> Scale:
    """Return the scale of a column of numbers, computed by the engine."""
    from discreet.microdata.masking._moments import moments

    found = moments(held.relation, [name])
    scale = float(found.means[0]), float(np.sqrt(found.covariances[0, 0]))
    if not np.isfinite(scale).all():
        raise _infinite()
    return scale


def _days(held: Dataset, name: str) -> Scale:
    """Return the scale of a column of days, in seconds, from the frequencies of its days."""
    counted = held.frequencies([name])
    counted = counted.filter(counted.column(0).is_valid())
    seconds = _DateColumn(counted.column(0)).values
    weights = counted.column("count").to_numpy()
    if weights.sum() < 2:
        return 0.0, 0.0
    mean = float(np.average(seconds, weights=weights))
    square = float((weights * (seconds - mean) ** 2).sum() / (weights.sum() - 1))
    return mean, float(np.sqrt(square))


def _infinite() -> InputError:
    return InputError(
        "a column to be aggregated holds infinite values",
        code="not-finite",
        hint="correct them, or code them as missing",
    )


class _Column:
    """One column on its way: as points for the distances, and as values for the result."""

    def __init__(self, missing: npt.NDArray[np.bool_]) -> None:
        self.missing = missing

    @staticmethod
    def of(column: pa.ChunkedArray, name: str, schema: Schema | None) -> _Column:
        declared = None if schema is None else schema[name]
        is_code = declared is not None and declared.type is Type.NOMINAL
        # A running number that was guessed to identify people is a number all the same.
        guessed = declared is not None and declared.role is Role.IDENTIFIER
        if is_number(column.type) and (guessed or not is_code):
            return _NumberColumn(numbers(column, name=name))
        if is_date(column.type) and not (
            declared is not None and (is_code or declared.hierarchies)
        ):
            return _DateColumn(column)
        if declared is not None and declared.type is Type.NUMERIC:
            numbers(column, name=name)  # says what is wrong with it
        return _CategoryColumn(*codes(column), name, schema)

    def embedded(self, places: Places) -> Numbers:
        raise NotImplementedError

    def aggregate(self, places: Places, groups: Places) -> None:
        raise NotImplementedError

    def withhold(self, places: Places) -> None:
        raise NotImplementedError

    def result(self) -> pa.Array:
        raise NotImplementedError


class _NumberColumn(_Column):
    def __init__(self, values: Numbers) -> None:
        super().__init__(np.isnan(values))
        self.values, self.masked = values, values.copy()
        known = values[~self.missing]
        if np.isinf(known).any():
            raise _infinite()
        self.deviation = float(known.std(ddof=1)) if known.size > 1 else 0.0
        self.mean = float(known.mean()) if known.size else 0.0

    def embedded(self, places: Places) -> Numbers:
        centred = self.values[places] - self.mean
        return (centred / self.deviation if self.deviation > 0 else centred * 0.0)[:, None]

    def aggregate(self, places: Places, groups: Places) -> None:
        # Sums of the centred values: large numbers with small differences keep their digits.
        total = np.bincount(groups, self.values[places] - self.mean)
        self.masked[places] = (self.mean + total / np.bincount(groups))[groups]

    def withhold(self, places: Places) -> None:
        self.masked[places] = np.nan

    def result(self) -> pa.Array:
        import pyarrow as pa

        return pa.array(self.masked, mask=np.isnan(self.masked))


class _DateColumn(_NumberColumn):
    """Dates as seconds, told as the date nearest to their mean."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        import pyarrow as pa

        self.type = column.type
        seconds = column.cast(pa.timestamp("s", getattr(column.type, "tz", None)), safe=False)
        super().__init__(numbers(seconds.cast(pa.int64()), name=""))

    def result(self) -> pa.Array:
        import pyarrow as pa

        step = 86_400 if pa.types.is_date(self.type) else 1
        rounded = np.round(np.nan_to_num(self.masked) / step).astype(np.int64) * step
        found = pa.array(rounded, pa.int64(), mask=np.isnan(self.masked))
        zone = getattr(self.type, "tz", None)
        return found.cast(pa.timestamp("s", zone)).cast(self.type)


class _CategoryColumn(_Column):
    def __init__(self, places: Places, values: pa.Array, name: str, schema: Schema | None) -> None:
        super().__init__(places < 0)
        self.places, self.values, self.masked = places, values, places.copy()
        self.levels = [np.arange(len(values))]
        found = schema.hierarchies(name) if schema is not None else ()
        if found:
            import pyarrow as pa

            words = values.cast(pa.string()).to_pylist()
            found[0].require_leaves(words, column=name)
            row = {leaf: place for place, leaf in enumerate(found[0].leaves)}
            table = found[0].levels[[row[word] for word in words]]
            # The root is the same for all and tells nothing apart.
            self.levels = [
                np.unique(table[:, level], return_inverse=True)[1].ravel()
                for level in range(max(table.shape[1] - 1, 1))
            ]

    def coded(self, places: Places) -> tuple[Places, Numbers]:
        """Return the code at every level, and the squared distance between two different ones."""
        codes = np.stack([level[self.places[places]] for level in self.levels], axis=1)
        return codes, np.full(len(self.levels), 1 / len(self.levels))

    def embedded(self, places: Places) -> Numbers:
        # Two different corners of this simplex lie at squared distance 1 / number of levels.
        side = np.sqrt(0.5 / len(self.levels))
        parts = []
        for level in self.levels:
            here = level[self.places[places]]
            corner = np.zeros((places.size, int(level.max(initial=0)) + 1))
            corner[np.arange(places.size), here] = side
            parts.append(corner)
        return np.concatenate(parts, axis=1)

    def aggregate(self, places: Places, groups: Places) -> None:
        width = len(self.values)
        pairs, counts = np.unique(groups * width + self.places[places], return_counts=True)
        group, value = np.divmod(pairs, width)
        order = np.lexsort((value, -counts, group))  # of equally frequent ones the first value
        first = order[np.unique(group[order], return_index=True)[1]]
        self.masked[places] = value[first][groups]

    def withhold(self, places: Places) -> None:
        self.masked[places] = -1

    def result(self) -> pa.Array:
        import pyarrow as pa

        return self.values.take(pa.array(self.masked, mask=self.masked < 0))
