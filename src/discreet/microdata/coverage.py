"""What a release does not promise: columns and classes that no model speaks about."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.engines import sql
from discreet.microdata.columns import is_date, is_number
from discreet.report import Report, Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["Coverage", "coverage", "is_idle", "unseen_combinations"]

#: Columns with more values than this are not looked at for combinations that nobody had.
_FEW = 150


@dataclasses.dataclass(frozen=True)
class Coverage(Report):
    """What the verdict on a release is not about.

    Examples
    --------
    >>> print(Coverage(("job",), ("pay",), {"illness": 2}, {}, 9).words)
    job leaves as it is; pay is confidential and no model or method is about it; in 2 of 9 classes everybody has the same illness
    """

    #: Columns that leave as they are, with nothing promised about them.
    unchanged: tuple[str, ...]
    #: Confidential columns that leave and that no model or method is about.
    unprotected: tuple[str, ...]
    #: For confidential columns the number of classes in which all records have one value.
    told: Mapping[str, int]
    #: For columns of models the number of classes in which a missing value counts as a value.
    missing: Mapping[str, int]
    classes: int
    #: For pairs of columns the number of records that combine them as no original record does.
    unseen: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def words(self) -> str:
        """All of it in one sentence; empty where nothing is left out."""
        parts = []
        if self.unchanged:
            parts.append(
                f"{_listed(self.unchanged)} as {'they are' if len(self.unchanged) > 1 else 'it is'}"
            )
        if self.unprotected:
            several = len(self.unprotected) > 1
            parts.append(
                f"{', '.join(self.unprotected)} {'are' if several else 'is'} confidential and no "
                f"model or method is about {'them' if several else 'it'}"
            )
        parts += [
            f"in {count:,} of {self.classes:,} classes everybody has the same {name}"
            for name, count in self.told.items()
        ]
        parts += [
            f"a missing {name} counts as a value in {count:,} of {self.classes:,} classes"
            for name, count in self.missing.items()
        ]
        parts += [
            f"{count:,} {'record combines' if count == 1 else 'records combine'} {pair} as no original record does"
            for pair, count in self.unseen.items()
        ]
        return "; ".join(parts)

    def rows(self) -> Rows:
        """Return one line per gap."""
        body: list[tuple[str, object]] = [
            ("columns that leave as they are", ", ".join(self.unchanged) or "none"),
            ("confidential columns without a model", ", ".join(self.unprotected) or "none"),
            *((f"classes with one {name}", count) for name, count in self.told.items()),
            *(
                (f"classes in which a missing {name} counts as a value", count)
                for name, count in self.missing.items()
            ),
            *((f"records with a {pair} that nobody had", n) for pair, n in self.unseen.items()),
        ]
        return ("", ""), body


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names)} {'leave' if len(names) > 1 else 'leaves'}"


def coverage(
    released: Dataset,
    keys: Sequence[str],
    *,
    changed: Collection[str],
    modelled: Collection[str] = (),
) -> Coverage:
    """Return what no model or method is about.

    Parameters
    ----------
    keys
        The quasi-identifiers; classes are records that agree on all of them.
    changed
        Columns whose values do not leave as they are.
    modelled
        Confidential columns that a privacy model is about.
    """
    schema = released.schema
    confidential = [name for name in schema.confidential if name in released.columns]
    looked = list(dict.fromkeys([*confidential, *modelled]))
    told, missing, classes = {}, {}, 0
    for name in looked if keys else ():
        classes, one, lacking = _values(released, keys, name)
        if one:
            told[name] = one
        if lacking and name in modelled:
            missing[name] = lacking
    return Coverage(
        tuple(n for n in released.columns if n not in changed and n not in looked),
        tuple(n for n in confidential if n not in modelled and n not in changed),
        told,
        missing,
        classes,
    )


#: From this share of equal values on nothing was done to a column, and numbers that differ by less
#: than this share of their spread are equal.
_IDLE, _MOVED = 0.99, 1e-3


def is_idle(before: pa.Array, after: pa.Array) -> bool:
    """Whether a column's released values are the original ones for nearly all records.

    >>> import pyarrow as pa
    >>> is_idle(pa.array([1.0, 5.0, 9.0]), pa.array([1.0, 5.0, 9.0000001]))
    True
    >>> is_idle(pa.array(["a", "b"]), pa.array(["a", "a"]))
    False
    """
    if is_number(before.type) and is_number(after.type):
        one, two = (_doubles(column) for column in (before, after))
        spread = float(np.nanstd(one)) if np.isfinite(one).any() else 0.0
        alike = (np.abs(one - two) <= _MOVED * spread) | (np.isnan(one) & np.isnan(two))
    else:
        alike = np.array(
            [str(a) == str(b) for a, b in zip(before.to_pylist(), after.to_pylist(), strict=True)]
        )
    return bool(alike.mean() >= _IDLE)


def _doubles(column: pa.Array) -> npt.NDArray[np.float64]:
    return np.array([math.nan if x is None else float(x) for x in column.to_pylist()])


def unseen_combinations(
    original: Dataset, released: Dataset, columns: Sequence[str]
) -> dict[str, int]:
    """Return for pairs of columns how many records have values that no original has together.

    Each of the columns, whose categories changed at random, is paired with every column that has
    few values: a married child is found, and a pay that one person has is not looked at.
    """
    few = [
        name for name in released.columns if name in original.columns and _has_few(original, name)
    ]
    found = {}
    for first in columns:
        for second in few:
            if second == first or (second in columns and f"{second} and {first}" in found):
                continue
            before = _pairs(original, first, second)
            after = _pairs(released, first, second)
            many = sum(count for pair, count in after.items() if pair not in before)
            if many:
                found[f"{first} and {second}"] = many
    return found


def _has_few(dataset: Dataset, name: str) -> bool:
    """Whether a column has few values; no more of them are fetched than tell it."""
    listed = sql.select(sql.subquery(dataset.relation.query, "t"), [sql.column(name)])
    return bool(dataset.engine.fetch(listed.distinct().limit(_FEW + 1)).num_rows <= _FEW)


def _pairs(dataset: Dataset, first: str, second: str) -> dict[tuple[object, object], int]:
    rows = dataset.frequencies([first, second])
    columns = [rows.column(place).to_pylist() for place in range(3)]
    return {
        (one, two): count
        for one, two, count in zip(*columns, strict=True)
        if one is not None and two is not None
    }


def _values(released: Dataset, keys: Sequence[str], name: str) -> tuple[int, int, int]:
    """Return the number of classes, of those with one known value, of those with a missing one."""
    kind = released.relation.schema.field(name).type
    value: exp.Expr = sql.column(name)
    if not is_number(kind) and not is_date(kind):
        value = exp.cast(value, "text")
    classes = sql.select(
        sql.subquery(released.relation.query, "t"),
        [
            sql.alias(exp.Min(this=value.copy()), "low"),
            sql.alias(exp.Max(this=value.copy()), "high"),
            sql.alias(exp.Count(this=value.copy()), "known"),
            sql.alias(exp.Count(this=exp.Star()), "n"),
        ],
    ).group_by(*(sql.column(key) for key in keys))
    whole = exp.EQ(this=sql.column("known"), expression=sql.column("n"))
    same = exp.EQ(this=sql.column("low"), expression=sql.column("high"))
    some = exp.GT(this=sql.column("known"), expression=exp.Literal.number(0))
    wanted = {
        "classes": exp.true(),
        "one": exp.And(this=whole, expression=same),
        "lacking": exp.And(this=exp.Not(this=whole.copy()), expression=some),
    }
    counted = [
        sql.alias(exp.Count(this=exp.Case().when(condition, exp.Literal.number(1))), word)
        for word, condition in wanted.items()
    ]
    found = released.engine.fetch(sql.select(sql.subquery(classes, "c"), counted)).to_pylist()[0]
    return int(found["classes"]), int(found["one"]), int(found["lacking"])
