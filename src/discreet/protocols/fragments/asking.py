"""The controller of fragments: it asks each cloud about its own columns and joins what comes back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import sqlglot
from sqlglot import exp

from discreet.data.addresses import without_passwords
from discreet.data.dataset import read
from discreet.errors import InputError, RefusedError
from discreet.protocols.fragments.clouds import ROW_ID, Cloud, Clouds, order_of, selected
from discreet.protocols.fragments.covariance import Covariances, covariances
from discreet.protocols.joint.learned import Leakage
from discreet.randomness import Randomness
from discreet.report import Report, Rows, plain

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa

__all__ = ["FragmentAnswer", "Fragments"]

#: Position lists are filled up with other rows to a power of two, and to this many at least.
_LEAST = 64


@dataclasses.dataclass(frozen=True, eq=False)
class FragmentAnswer(Report):
    """The answer to a statement over fragments, and what each cloud was asked."""

    frame: pandas.DataFrame
    #: For each cloud the statements it was sent, positions written as their number.
    asked: Mapping[str, tuple[str, ...]]
    leakage: Leakage

    def rows(self) -> Rows:
        """Return the answer."""
        lines = [tuple(plain(cell) for cell in row) for row in self.frame.to_numpy(dtype=object)]
        return tuple(map(str, self.frame.columns)), lines


@dataclasses.dataclass(frozen=True)
class Fragments(Clouds):
    """A relation in fragments, as its controller sees it; `open` reads the controller's file."""

    def ask(self, sql: str) -> FragmentAnswer:
        """Answer one SELECT over the whole relation.

        Where one cloud holds all its columns, it is asked as it is. Otherwise each cloud answers the
        conditions on its own columns with row numbers; the controller joins them by its seeds,
        fetches the other columns of these rows, among others that hide which, and finishes.
        """
        query = self._read(sql)
        used = self._used(query)
        asked: dict[str, list[str]] = {cloud.address: [] for cloud in self.clouds}
        for cloud in self.clouds:
            if used <= set(cloud.columns):
                found = self.fetch(cloud, query)
                asked[cloud.address].append(query.sql(dialect="postgres"))
                return self._answer(found, asked)
        rows = self._joined(query, used, asked)
        whole = read(rows, name=self.relation)
        return self._answer(whole.aggregate(query), asked)

    def covariances(
        self, columns: Sequence[str], *, circle: str | Path | None = None
    ) -> Covariances:
        """Return the covariances of columns, wherever they are, without fetching them.

        `circle` is the file of the programs that run beside the databases
        (`discreet fragments cloud`); without it they are started on this machine.
        """
        return covariances(self, columns, circle=circle)

    def _answer(self, found: pa.Table, asked: Mapping[str, Sequence[str]]) -> FragmentAnswer:
        told = {without_passwords(one): tuple(several) for one, several in asked.items()}
        return FragmentAnswer(found.to_pandas(), told, _LEAKAGE)

    def _read(self, sql: str) -> exp.Select:
        try:
            query = sqlglot.parse_one(sql, dialect="postgres")
        except sqlglot.errors.SqlglotError:
            raise InputError(
                "the statement cannot be read", code="sql-syntax", hint="write one SELECT"
            ) from None
        tables = list(query.find_all(exp.Table))
        if (
            not isinstance(query, exp.Select)
            or len(list(query.find_all(exp.Query))) > 1
            or [table.name for table in tables] != [self.relation]
        ):
            raise RefusedError(
                "fragments answer one SELECT over one relation",
                code="fragments-unsupported",
                hint=f"ask of {self.relation} alone, without other tables or subqueries",
            )
        return query

    def _used(self, query: exp.Expr) -> set[str]:
        known = {name for cloud in self.clouds for name in cloud.columns}
        if any(isinstance(one, exp.Star) for one in query.expressions):
            return known
        labels = {one.alias for one in query.expressions if one.alias}
        used = {column.name for column in query.find_all(exp.Column)}
        unknown = sorted(used - known - labels)
        if unknown:
            raise InputError(
                f"there is no column {unknown[0]!r}", code="unknown-column",
                hint="choose one of " + ", ".join(sorted(known)),
            )  # fmt: skip
        return used & known

    def _joined(self, query: exp.Expr, used: set[str], asked: Mapping[str, list[str]]) -> pa.Table:
        """Return the columns of all records that may meet the condition, put together."""
        import pyarrow as pa

        kept = np.ones(self.records, dtype=np.bool_)
        for cloud, condition in self._conditions(query):
            wanted = selected(self.relation, [ROW_ID]).where(condition)
            rows = self.fetch(cloud, wanted).column(0).to_numpy()
            asked[cloud.address].append(wanted.sql(dialect="postgres"))
            met = np.zeros(self.records, dtype=np.bool_)
            met[order_of(cloud.seed, self.records)[rows]] = True
            kept &= met
        records = np.flatnonzero(kept)
        columns: dict[str, Any] = {}
        for cloud in self.clouds:
            names = [name for name in cloud.columns if name in used]
            if not names:
                continue
            row_of = np.argsort(order_of(cloud.seed, self.records))
            listed = self._padded(row_of[records])
            query = selected(self.relation, [*names, ROW_ID])
            if len(listed) < self.records:
                places = [exp.Literal.number(int(row)) for row in listed]
                query = query.where(exp.column(ROW_ID, quoted=True).isin(*places))
            found = self.fetch(cloud, query)
            written = ", ".join(names)
            asked[cloud.address].append(f"{written} of {len(listed)} rows")
            at = np.empty(self.records, dtype=np.int64)
            at[found.column(ROW_ID).to_numpy()] = np.arange(len(found))
            chosen = found.take(pa.array(at[row_of[records]]))
            columns |= {name: chosen.column(name) for name in names}
        return pa.table(columns)

    def _conditions(self, query: exp.Expr) -> list[tuple[Cloud, exp.Expr]]:
        """Return the parts of the condition that one cloud can tell by itself."""
        where = query.args.get("where")
        parts = [] if where is None else list(where.this.flatten()) if isinstance(
            where.this, exp.And) else [where.this]  # fmt: skip
        found: dict[Cloud, exp.Expr] = {}
        for part in parts:
            names = {column.name for column in part.find_all(exp.Column)}
            for cloud in self.clouds:
                if names and names <= set(cloud.columns):
                    known = found.get(cloud)
                    found[cloud] = part.copy() if known is None else exp.and_(known, part.copy())
        return list(found.items())

    def _padded(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return rows among others, so many that their number tells little; sorted.

        The same rows get the same others: a cloud that is asked again would otherwise see which rows
        come back.
        """
        size = max(_LEAST, 1 << max(len(rows) - 1, 0).bit_length())
        if 2 * size >= self.records:
            return np.arange(self.records)
        others = np.setdiff1d(np.arange(self.records), rows)
        # Of all seeds: for covariances a cloud learns its own, and could try rows out.
        secret = b"".join(cloud.seed for cloud in self.clouds)
        purpose = b"other rows " + np.sort(rows).astype("<i8").tobytes()
        chosen = Randomness.keyed(secret, purpose).sample(len(others), size - len(rows))
        return np.sort(np.concatenate([rows, others[chosen]]))


_LEAKAGE = Leakage.of(
    ("cloud", "its own columns in an order of its own; conditions and aggregates on its own columns; "
     "lists of rows, among others, of which columns are fetched",
     "about how many records meet conditions on other clouds' columns"),
    ("controller", "the answer, and where it joins fragments the columns that the statement names",
     "what they say"),
    assumes=("clouds do not put their fragments together with the lists they were sent",
             "the controller's file stays with the controller"),
)  # fmt: skip
