"""The release: a permuted table, its help table, and answers from nothing but the two."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.release import Evidence, Release
from discreet.errors import InputError, RefusedError
from discreet.ledger.recording import standing_in
from discreet.microdata.permutation.groups import GROUP, HELP_COLUMNS
from discreet.report import Report, Rows
from discreet.verification import Held

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset
    from discreet.data.engines.base import Engine, Relation
    from discreet.data.facts import Facts
    from discreet.ledger.memory import Memory as Ledgered
    from discreet.microdata.permutation.memory import Memory
    from discreet.microdata.permutation.remembering import Remembered
    from discreet.microdata.permutation.risk import PermutationRisk
    from discreet.microdata.permutation.statement import Statement

__all__ = ["BoundsAnswer", "PermutationFacts", "Permuted"]

#: File names of a written release.
PERMUTED_FILE = "permuted"
HELP_FILE = "help"
_FORMAT = "parquet"
#: A verdict does not mention attacks that are right for so few more people than guessing.
_LITTLE = 0.02

_ESTIMATES = (
    "estimates are model-based: they assume that inside a group every record is equally likely to "
    "have each value; only the bounds are sure"
)
_VARIANCE = "the lower bound of a variance is exact, the upper one is sure but not the least"


@dataclasses.dataclass(frozen=True)
class PermutationFacts(Report):
    """What was asked of a release, and what it reached."""

    records: int
    groups: int
    k: int
    e: float
    #: The fewest distinct values and the narrowest range of any group.
    k_reached: int
    e_reached: float
    #: Largest share of one value in a group; at most 1/k with the cap.
    worst_share: float
    cap: bool
    partition: dict[str, Any]
    largest_group: int
    #: Records left out because their sensitive value is missing.
    missing: int = 0
    #: Columns that were not released: identifiers and other confidential columns.
    dropped: tuple[str, ...] = ()
    #: Mean over the records of their group's range, relative to the whole range.
    mean_range: float = 0.0
    #: The fewest people who own records of one group; None where every record is a person.
    people_reached: int | None = None

    @property
    def is_valid(self) -> bool:
        """Whether every group has what was asked."""
        capped = not self.cap or self.worst_share * self.k <= 1 + 1e-12
        owned = self.people_reached is None or self.people_reached >= self.k
        return self.k_reached >= self.k and self.e_reached >= self.e and capped and owned


@dataclasses.dataclass(frozen=True, eq=False)
class BoundsAnswer(Report):
    """An answer with a lower and an upper bound per aggregate."""

    #: "exact" where every lower bound equals its upper bound, else "interval".
    kind: str
    #: Keys, and `<name>_lower`, `<name>_upper`, `<name>_estimate` per aggregate.
    frame: Any = dataclasses.field(repr=False)
    notes: tuple[str, ...] = ()
    _rows: Any = dataclasses.field(default=None, repr=False)
    _sql: Callable[[], str] = dataclasses.field(default=str, repr=False)

    @property
    def sql(self) -> str:
        """The query over the released tables, in the dialect of their engine."""
        return self._sql()

    def rows(self) -> Rows:
        """Return the answer as it is."""
        table = self._rows
        return table.column_names, [list(row.values()) for row in table.to_pylist()]

    def to_dict(self) -> dict[str, Any]:
        """Return kind, rows, query and notes as plain data."""
        from discreet.report import plain

        return {
            "kind": self.kind,
            "rows": plain(self._rows.to_pylist()),
            "sql": self.sql,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"({note})" for note in self.notes)])


class Permuted(Release):
    """A permuted release that answers queries with sure bounds.

    Made by `permute`, or read back by anyone with `Permuted.read`.

    Parameters
    ----------
    permuted, help_table
        The two released tables, in one engine.
    name
        The name of the original table in SQL.
    sensitive
        The permuted column.
    library
        What `frame` and answers come as: "pandas", "polars" or "pyarrow".
    facts, risk
        What is known from making it; without, only the tables are known.
    randomness
        "secure" or "seeded"; a seeded release is not written.
    owners
        The person behind each record, by group, where people own several; never written.
    """

    def __init__(
        self,
        permuted: Relation,
        help_table: Relation,
        *,
        name: str,
        sensitive: str,
        library: str = "pandas",
        facts: PermutationFacts | None = None,
        risk: PermutationRisk | None = None,
        randomness: str = "none",
        owners: npt.NDArray[np.int64] | None = None,
    ) -> None:
        _require_release(permuted, help_table, sensitive)
        self.permuted = permuted
        self.help = help_table
        self.name = name
        self.sensitive = sensitive
        self.library = library
        self.facts = facts
        self.risk = risk
        self.randomness = randomness
        self._owners = owners
        self._remembered: Remembered | None = None

    def __repr__(self) -> str:
        facts = self.facts
        shown = "" if facts is None else f", {facts.records:,} records in {facts.groups:,} groups"
        return f"Permuted({self.name}.{self.sensitive}{shown})"

    def __str__(self) -> str:
        parts = [str(part) for part in (self.facts, self.risk) if part is not None]
        return "\n".join(parts) or repr(self)

    @property
    def engine(self) -> Engine:
        """Where the released tables are."""
        return self.permuted.engine

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that queries may name."""
        return tuple(c for c in self.permuted.columns if c != GROUP and not c.startswith("__"))

    @property
    def frame(self) -> Any:
        """The permuted table, in the type that went in.

        Any: three libraries, none of them needed.
        """
        return self._as_library(self._arrow(self.permuted))

    @property
    def help_frame(self) -> Any:
        """The help table, in the type that went in.

        Any: three libraries, none of them needed.
        """
        return self._as_library(self._arrow(self.help))

    @property
    def loss(self) -> dict[str, float]:
        """How much is lost: the mean range of a record's group, relative to the whole range."""
        return {} if self.facts is None else {"mean_range": self.facts.mean_range}

    @functools.cached_property
    def kind(self) -> str:
        """What arithmetic the sensitive column has: see `Amounts.kind`."""
        import pyarrow as pa

        if "lb_sum" not in self.help.columns:
            return "category"
        sums = self.help.schema.field("lb_sum").type
        if pa.types.is_integer(sums):
            return "integer"
        return "decimal" if pa.types.is_decimal(sums) else "float"

    # -- asking ------------------------------------------------------------------------------------
    def ask(self, sql: str, *, path: Literal["auto", "memory", "engine"] = "auto") -> BoundsAnswer:
        """Answer a query over the original table with bounds that hold the truth.

        Parameters
        ----------
        sql
            `SELECT` with COUNT, SUM, AVG, MIN, MAX, MEDIAN, quantiles, VARIANCE, STDDEV or
            SUM(weight * column) of the sensitive column; WHERE and GROUP BY on the others; for
            COUNT also WHERE on the sensitive column. Anything else is refused with the reason.
        path
            "memory" answers from arrays, "engine" runs the rewritten SQL; "auto" takes the first
            where it can.
        """
        from discreet.microdata.permutation.memory import NotInMemory

        statement = self._statement(sql)
        rows = None
        if path == "memory" or (path == "auto" and self.engine.name == "duckdb"):
            try:
                rows = self._memory.answer(statement)
            except NotInMemory:
                if path == "memory":
                    raise InputError(
                        "this query is not answered in memory",
                        code="not-in-memory",
                        hint='leave out path, or write path="engine"',
                    ) from None
        if rows is None:
            rows = self._run(statement)
        notes = [_ESTIMATES]
        if any(aggregate.kind == "variance" for aggregate in statement.aggregates):
            notes.append(_VARIANCE)
        kind = "exact" if _is_exact(rows, statement) else "interval"
        explained = functools.partial(self._explained, statement)
        return BoundsAnswer(kind, self._as_library(rows), tuple(notes), rows, explained)

    def explain(self, sql: str, *, dialect: str | None = None) -> str:
        """Return the rewritten query without running it: for this engine, or another dialect."""
        if dialect not in (None, "duckdb", "postgres", "spark"):
            raise InputError(
                f"there is no dialect {dialect!r}",
                code="unknown-dialect",
                hint="choose one of duckdb, postgres, spark",
            )
        return self._explained(self._statement(sql), dialect)

    def _statement(self, sql: str) -> Statement:
        from discreet.microdata.permutation.statement import parse

        return parse(
            sql,
            name=self.name,
            columns=self.columns,
            sensitive=self.sensitive,
            category=self.kind == "category",
        )

    def _rewritten(self, statement: Statement) -> exp.Select:
        from discreet.microdata.permutation.rewrite import rewrite

        return rewrite(statement, sensitive=self.sensitive, kind=self.kind)

    def _explained(self, statement: Statement, dialect: str | None = None) -> str:
        return self._rewritten(statement).sql(dialect=dialect or self.engine.name, pretty=True)

    def _run(self, statement: Statement) -> pa.Table:
        from discreet.microdata.permutation.rewrite import HELP, PERMUTED

        permuted, help_table = self._stored
        relations = {PERMUTED: permuted, HELP: help_table}
        return self.engine.aggregate(self._rewritten(statement), relations)

    @functools.cached_property
    def _stored(self) -> tuple[Relation, Relation]:
        # DuckDB scans its own tables several times faster than the memory of another library.
        if self.engine.name != "duckdb":
            return self.permuted, self.help
        return self.engine.materialize(self.permuted), self.engine.materialize(self.help)

    @functools.cached_property
    def _memory(self) -> Memory:
        from discreet.data.engines import connect
        from discreet.microdata.permutation.memory import Memory

        return Memory(
            self._arrow(self.permuted),
            self._arrow(self.help),
            sensitive=self.sensitive,
            kind=self.kind,
            engine=self.engine if self.engine.name == "duckdb" else connect("duckdb://"),
        )

    def _arrow(self, relation: Relation) -> pa.Table:
        key = GROUP if relation is self.permuted else "row_id"
        return self.engine.fetch(relation).sort_by(key)

    def _as_library(self, rows: pa.Table) -> Any:
        from discreet.data.dataset import to_library

        return to_library(rows, self.library)

    # -- checking ----------------------------------------------------------------------------------
    def check(self) -> PermutationFacts:
        """Recompute what the release reached from the permuted table alone, as anyone can."""
        from discreet.microdata.permutation.amounts import Amounts
        from discreet.microdata.permutation.groups import Groups

        rows = self._arrow(self.permuted)
        category = self.kind == "category"
        amounts = Amounts.of(rows.column(self.sensitive), name=self.sensitive, category=category)
        _, labels = np.unique(rows.column(GROUP).to_numpy(), return_inverse=True)
        known = self.facts
        return facts_of(
            Groups.of(amounts, labels.astype(np.int64)),
            k=known.k if known else 2,
            e=known.e if known else 0.0,
            cap=known.cap if known else False,
            partition=known.partition if known else {},
        )

    # -- remembering -------------------------------------------------------------------------------
    def title(self) -> str:
        """Return what was permuted."""
        return f"{self.sensitive} permuted"

    def remember(self, remembered: Remembered, memory: Ledgered) -> None:
        """Take note of the records and their groups, judged by the memory of a ledger."""
        remembered.judge(memory)
        self._remembered, self.standing = remembered, standing_in(memory)

    def records(self) -> Dataset | None:
        """Return the records before; none where it was made without a ledger."""
        return None if self._remembered is None else self._remembered.dataset

    def discloses(self, memory: Ledgered) -> Sequence[Facts]:
        """Return the groups and their sums."""
        assert self._remembered is not None
        return self._remembered.facts(memory)

    def judge(self, memory: Ledgered) -> None:
        """Refuse groups that earlier releases take apart."""
        assert self._remembered is not None
        self._remembered.judge(memory)

    # -- leaving -----------------------------------------------------------------------------------
    def evidence(self) -> Evidence:
        """Return what was done and what it promises."""
        from discreet.report import plain

        facts = self.facts or self.check()
        promise = f"every person is hidden among at least {facts.k_reached} values"
        if self.kind != "category":
            promise += f" that span at least {facts.e_reached:g}"
        if facts.people_reached is not None:
            promise += f", of at least {facts.people_reached} people"
        if facts.worst_share * facts.k > 1 + 1e-12:
            promise += (
                f"; but one value makes up {facts.worst_share:.0%} of a group, so a guess can be "
                "right that often (cap=True would bound it)"
            )
        promise += self._strongest_attack()
        settings = {
            "name": self.name,
            "sensitive": self.sensitive,
            "arithmetic": self.kind,
            **plain(facts),
        }
        return Evidence(
            kind="permutation",
            settings=settings,
            risk={} if self.risk is None else self.risk.to_dict(),
            loss=self.loss,
            verdict=promise,
            randomness=self.randomness,
        )

    def _strongest_attack(self) -> str:
        """Return what ordering the groups by released columns gives away, in words."""
        found = None if self.risk is None else self.risk.ordering
        if found is None or found.advantage <= _LITTLE:
            return ""
        return (
            f"; but whoever orders the groups by {found.strongest} finds the exact value of "
            f"{found.accuracy:.0%} of the people, where guessing finds {found.baseline:.0%}"
        )

    def promises(self) -> Sequence[Mapping[str, Any]]:
        """Return what every group of the permuted table has."""
        facts = self.facts or self.check()
        promise = {
            "kind": "permutation",
            "file": f"{PERMUTED_FILE}.{_FORMAT}",
            "help": f"{HELP_FILE}.{_FORMAT}",
            "columns": list(self.permuted.columns),
            "group": GROUP,
            "sensitive": self.sensitive,
            "category": self.kind == "category",
            "records": facts.records,
            "counted": "records" if facts.people_reached is None else "people",
            **{name: getattr(facts, name) for name in ("k", "e", "cap")},
        }
        return [promise]

    def held(self) -> Held:
        """Return the owners of the records of each group, where the promise is about people."""
        import pyarrow as pa

        if self._owners is None:
            return Held()
        groups = self._arrow(self.permuted).column(GROUP)
        return Held(owners=pa.table({"group": groups, "unit": self._owners}))

    def _require_secure(self) -> None:
        if self.randomness == "seeded":
            raise RefusedError(
                "a seeded random source can be replayed, so it is refused for a release",
                code="seeded-randomness",
                hint="leave out rng, or pass rng=Randomness.secure()",
            )

    def write_files(self, folder: Path, *, format: str = _FORMAT) -> None:
        """Write the permuted table, the help table and a page for people."""
        from discreet.page import Page, Section

        self._require_secure()
        for relation, stem in ((self.permuted, PERMUTED_FILE), (self.help, HELP_FILE)):
            self.engine.write(relation, folder / f"{stem}.{format}", format=format)
        sections = [Section("What was reached", table=self.facts or self.check())]
        if self.risk is not None:
            sections.append(Section("Risk", table=self.risk))
            if self.risk.ordering is not None and self.risk.ordering.found:
                sections.append(
                    Section(
                        "Ordering",
                        text="Share of the people whose exact value is found by whoever orders each "
                        "group by a column, or by a regression on all of them.",
                        table=self.risk.ordering,
                    )
                )
            sections.append(
                Section(
                    "Insiders",
                    text="Members of a group who share their own values take these away.",
                    table=self.risk.insiders,
                )
            )
        sections.append(
            Section(
                "How to ask",
                text=f"The permuted table has the columns of {self.name}; {self.sensitive} changed "
                "hands inside each group. Bounds need nothing but the two tables.",
                code=f'discreet ask --release DIR "SELECT COUNT(*) FROM {self.name}"',  # noqa: S608
            )
        )
        page = Page(f"{self.name}: permuted release", sections, verdict=self.evidence().verdict)
        (folder / "report.html").write_text(page.html(), encoding="utf-8")

    def store(self, prefix: str, engine: Engine | None = None) -> tuple[str, str]:
        """Write the two tables into an engine, as `<prefix>_permuted` and `<prefix>_help`."""
        self._require_secure()
        names = (f"{prefix}_permuted", f"{prefix}_help")
        for relation, name in zip((self.permuted, self.help), names, strict=True):
            if engine is None or engine is self.engine:
                self.engine.write(relation, name, format="table")
            else:
                engine.write(engine.load(self._arrow(relation)), name, format="table")
        return names

    @classmethod
    def read(cls, folder: str | Path, *, engine: Engine | None = None) -> Permuted:
        """Read a written release back: two tables, in Parquet, CSV or Arrow."""
        from discreet.data.dataset import read

        folder = Path(folder)
        found = {}
        for stem in (PERMUTED_FILE, HELP_FILE):
            files = [
                f for s in ("parquet", "csv", "arrow") if (f := folder / f"{stem}.{s}").exists()
            ]
            if not files:
                raise InputError(
                    f"the release has no {stem} table",
                    code="missing-file",
                    hint="name the folder that `discreet permute` wrote",
                    file=folder / f"{stem}.parquet",
                )
            found[stem] = read(files[0], engine=engine)
            engine = found[stem].engine
        settings: dict[str, Any] = {}
        if (folder / "evidence.json").exists():
            settings = json.loads((folder / "evidence.json").read_text(encoding="utf-8"))[
                "settings"
            ]
        permuted = found[PERMUTED_FILE].relation
        return cls(
            permuted,
            found[HELP_FILE].relation,
            name=settings.get("name", "data"),
            # Without evidence: the sensitive column is the last one.
            sensitive=settings.get("sensitive", permuted.columns[-1]),
        )

    @classmethod
    def open(
        cls, engine: Engine, prefix: str, *, name: str, sensitive: str | None = None
    ) -> Permuted:
        """Open a release that `store` wrote into an engine."""
        permuted = engine.table(f"{prefix}_permuted")
        help_table = engine.table(f"{prefix}_help")
        last = [c for c in permuted.columns if c != GROUP][-1]
        return cls(permuted, help_table, name=name, sensitive=sensitive or last)


def facts_of(
    groups: Any, *, k: int, e: float, cap: bool, partition: dict[str, Any], **more: Any
) -> PermutationFacts:
    """Return what a partition reached.

    Any: `groups` is a `Groups`; `more` are further fields of the facts.
    """
    distinct, span, most = groups.facts()
    sizes, values = groups.sizes, groups.amounts.distinct
    whole = float(values[-1] - values[0]) or 1.0
    number = groups.amounts.is_number
    return PermutationFacts(
        records=int(sizes.sum()),
        groups=len(groups),
        k=k,
        e=e,
        k_reached=int(distinct.min()),
        e_reached=float(span.min()) if number else 0.0,
        worst_share=float((most / sizes).max()),
        cap=cap,
        partition=partition,
        largest_group=int(sizes.max()),
        mean_range=float((span * sizes).sum() / sizes.sum() / whole) if number else 1.0,
        **more,
    )


def _require_release(permuted: Relation, help_table: Relation, sensitive: str) -> None:
    permuted.require(GROUP, sensitive)
    missing = [c for c in HELP_COLUMNS[:3] if c not in help_table.columns]
    if missing:
        raise InputError(
            f"the help table has no column {missing[0]!r}",
            code="bad-release",
            hint="give the help table that was released with the permuted one",
            column=missing[0],
        )


def _is_exact(rows: pa.Table, statement: Statement) -> bool:
    return all(
        rows.column(f"{a.label}_lower").equals(
            rows.column(f"{a.label}_upper").cast(rows.column(f"{a.label}_lower").type)
        )
        for a in statement.aggregates
    )
