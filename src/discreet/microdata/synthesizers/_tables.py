"""Marginals of a file over public domains, counted in the engine: no record is fetched."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.data.domain import Domain
from discreet.dp.graphical.domain import Clique, Sizes
from discreet.errors import InputError
from discreet.microdata.columns import is_date, is_number
from discreet.randomness import Randomness

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from discreet.data.dataset import Dataset

__all__ = ["Coding", "Tables", "codings"]

Counts = npt.NDArray[np.int64]

#: Codes of a column at most: each is a condition of a statement.
_CODES = 10_000


@dataclasses.dataclass(frozen=True, eq=False)
class Coding:
    """How a column becomes codes and back, by what is public alone."""

    name: str
    kind: pa.DataType
    #: The values of the codes, in the column's own type; None where codes are bins.
    values: pa.Array | None
    #: Ends of the bins of numbers.
    cuts: npt.NDArray[np.float64] | None
    #: Whether a last code stands for missing values.
    missing: bool

    @property
    def known(self) -> int:
        """Number of codes of values."""
        return len(self.values) if self.values is not None else len(self.cuts) - 1  # type: ignore[arg-type]  # one of both

    @property
    def codes(self) -> int:
        """Number of codes, that of missing values included."""
        return self.known + self.missing

    def expression(self) -> exp.Expr:
        """Return the code as SQL: null for what lies outside the domain."""
        from sqlglot import exp

        from discreet.data.engines import sql

        column = sql.column(self.name)
        cases = []
        if self.missing:
            unknown = exp.Is(this=column.copy(), expression=exp.Null())
            cases.append(exp.If(this=unknown, true=sql.number(self.known)))
        if self.values is not None:
            for code, value in enumerate(self.values.to_pylist()):
                same = exp.EQ(this=column.copy(), expression=sql.literal(value))
                cases.append(exp.If(this=same, true=sql.number(code)))
            return exp.Case(ifs=cases)
        assert self.cuts is not None
        value = sql.double(column.copy())
        below = exp.LT(this=value.copy(), expression=sql.number(float(self.cuts[0])))
        above = exp.GT(this=value.copy(), expression=sql.number(float(self.cuts[-1])))
        outside = exp.Or(this=exp.Paren(this=below), expression=exp.Paren(this=above))
        cases.append(exp.If(this=outside, true=exp.Null()))
        for code, cut in enumerate(self.cuts[1:-1].tolist()):
            under = exp.LT(this=value.copy(), expression=sql.number(cut))
            cases.append(exp.If(this=under, true=sql.number(code)))
        inside = exp.LTE(this=value.copy(), expression=sql.number(float(self.cuts[-1])))
        cases.append(exp.If(this=inside, true=sql.number(self.known - 1)))
        return exp.Case(ifs=cases)

    def decoded(self, codes: Counts, *, rng: Randomness) -> pa.Array:
        """Return values of codes; within a bin they are drawn uniformly."""
        import pyarrow as pa

        unknown = codes >= self.known
        safe = np.where(unknown, 0, codes)
        if self.values is not None:
            return self.values.take(pa.array(safe, mask=unknown))
        assert self.cuts is not None
        low, high = self.cuts[safe], self.cuts[safe + 1]
        share = rng.uniform(codes.size)
        if pa.types.is_integer(self.kind):
            first, last = np.ceil(low), np.floor(high)
            # Ends belong to the bin above them, but for the last one.
            last = np.where((last == high) & (safe < self.known - 1), last - 1, last)
            drawn = np.minimum(first + np.floor(share * (last - first + 1)), last)
            return pa.array(drawn.astype(np.int64), mask=unknown).cast(self.kind)
        drawn = low + share * (high - low)
        return pa.array(drawn, pa.float64(), mask=unknown).cast(self.kind, safe=False)


def codings(
    dataset: Dataset, names: Sequence[str], *, bins: int, missing: Sequence[str]
) -> list[Coding]:
    """Return the coding of columns by their declared domains; looks at no value."""
    for name in missing:
        dataset.schema[name]
    fields, found = dataset.relation.schema, []
    for name in names:
        domain, kind = dataset.schema.domain(name), fields.field(name).type
        found.append(_coding(name, kind, domain, bins, name in missing))
        if found[-1].codes > _CODES:
            raise InputError(
                f"column {name!r} has {found[-1].codes:,} codes, each of which would be counted",
                code="domain-too-large",
                hint=f"declare at most {_CODES:,}: domains={{{name!r}: {{'cuts': […]}}}}",
                column=name,
            )
    return found


def _coding(name: str, kind: Any, domain: Domain | None, bins: int, missing: bool) -> Coding:
    import pyarrow as pa

    if domain is None:
        raise InputError(
            f"column {name!r} has no declared domain, and its values may not be looked up",
            code="missing-domain",
            hint=f"read the data with domains={{{name!r}: ['a', 'b', …]}} or {{'cuts': [0, 18, 65]}}, "
            f"or bounds={{{name!r}: (0, 100)}}; the leaves of a hierarchy count where it is a file or "
            "spelt out, not where it is made from the records' values",
            column=name,
        )
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if domain.values is not None:
        given = [value for value in domain.values if value is not None]
        missing = missing or len(given) < len(domain.values)
        try:
            values = pa.array(given).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            raise InputError(
                f"the declared values of column {name!r} are not of its type, {kind}",
                code="bad-domain",
                hint="write them as the file does",
                column=name,
            ) from None
        return Coding(name, kind, values, None, missing)
    if not is_number(kind) or is_date(kind):
        raise InputError(
            f"column {name!r} holds no numbers, so a range or cut points do not fit it",
            code="bad-domain",
            hint="list its values",
            column=name,
        )
    assert domain.range is not None
    _require_held(name, kind, *domain.range)
    cuts = np.asarray(domain.cuts, np.float64) if domain.cuts is not None else None
    if cuts is None:
        assert domain.bounds is not None
        cuts = _equal(*domain.bounds, bins, whole=pa.types.is_integer(kind))
    if pa.types.is_integer(kind) and (np.diff(cuts) < 1).any():
        raise InputError(
            f"column {name!r} holds whole numbers, and a bin narrower than 1 may hold none",
            code="bad-domain",
            hint="use fewer cut points",
            column=name,
        )
    return Coding(name, kind, None, cuts, missing)


def _require_held(name: str, kind: Any, low: float, high: float) -> None:
    """Raise an InputError where a type cannot hold a range, or arithmetic on it would overflow."""
    import pyarrow as pa

    if pa.types.is_integer(kind):
        held = np.iinfo(kind.to_pandas_dtype())
        # Beyond 2⁵³ not every whole number is a number of double precision.
        least, most = max(float(held.min), -(2.0**53)), min(float(held.max), 2.0**53)
    else:
        most = 1e38 if pa.types.is_float32(kind) else 1e150
        least = -most
    if low < least or high > most:
        raise InputError(
            f"column {name!r} is of the type {kind}, and the declared range {low:g} to {high:g} is beyond "
            f"{least:g} to {most:g}",
            code="bad-domain",
            hint="declare the range that values can have",
            column=name,
        )


def _equal(low: float, high: float, bins: int, *, whole: bool) -> npt.NDArray[np.float64]:
    if whole:
        bins = max(1, min(bins, int(high - low)))
    found = np.linspace(low, high, bins + 1)
    return np.unique(np.rint(found)) if whole else found


class Tables:
    """Counts of every combination of codes, each asked for once."""

    def __init__(self, dataset: Dataset, coded: Sequence[Coding]) -> None:
        from discreet.data.engines import sql

        self.codings = tuple(coded)
        self.sizes = Sizes(tuple(one.codes for one in coded))
        self._names = [f"c{place}" for place in range(len(coded))]
        chosen = [
            sql.alias(one.expression(), name) for one, name in zip(coded, self._names, strict=True)
        ]
        self._engine = dataset.engine
        query = sql.select(sql.subquery(dataset.relation.query, "t"), chosen)
        # Coded once: every table is then a count of small numbers.
        self._relation = self._engine.materialize(self._engine.relation(query))

    def require_inside(self) -> None:
        """Raise an InputError if a value lies outside its domain; the value is not told."""
        from sqlglot import exp

        from discreet.data.engines import sql

        wanted = [sql.alias(exp.Count(this=sql.column(name)), name) for name in self._names]
        wanted.append(sql.alias(exp.Count(this=exp.Star()), "rows"))
        found = self._engine.fetch(
            sql.select(sql.subquery(self._relation.query, "t"), wanted)
        ).to_pylist()[0]
        for one, name in zip(self.codings, self._names, strict=True):
            if found[name] < found["rows"]:
                raise InputError(
                    f"column {one.name!r} holds values outside its declared domain",
                    code="outside-domain",
                    hint="declare every possible value; where values may be missing, list None among "
                    f"them or name the column: missing=[{one.name!r}]",
                    column=one.name,
                )

    @functools.cache  # noqa: B019  # lives as long as one fit
    def counts(self, attributes: Clique) -> Counts:
        """Return the counts of a table over some columns."""
        names = [self._names[attribute] for attribute in attributes]
        rows = self._engine.frequencies(self._relation, names)
        table = np.zeros(self.sizes.shape(attributes), np.int64)
        places = tuple(np.asarray(rows.column(name).to_numpy(), np.int64) for name in names)
        table[places] = np.asarray(rows.column("count").to_numpy(), np.int64)
        return table

    def close(self) -> None:
        """Drop what was coded."""
        self._engine.drop(self._relation)
