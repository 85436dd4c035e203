"""Spark: records that live on a cluster."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no annotations
from pyspark import SparkContext
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession
from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.base import ROW, Engine, Relation, connect, fresh_name
from discreet.data.engines.results import loadable
from discreet.data.engines.spelling import Spelling, require_distinct
from discreet.errors import EngineError, InputError
from discreet.progress import tell

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Spark"]

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
_SESSION = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
}
# monotonically_increasing_id: the partition in the upper bits, the place in it in the lower 33.
_PLACE_BITS = 33


class Spark(Engine):
    """A Spark cluster (`spark://host:port`), Spark in this process (`spark://local`) or Connect.

    Parameters
    ----------
    url
        The master; `sc://host:port` speaks Spark Connect.
    options
        Spark's own settings by their names, as `connect(url, **{"spark.executor.memory": "4g"})`.
    """

    name = "spark"

    def __init__(self, url: str, **options: Any) -> None:
        parts = urlsplit(url)
        if parts.scheme != "sc":
            _shared.require(_master(url))
        builder = SparkSession.builder.appName("discreet")
        for key, value in (_SETTINGS | options).items():
            builder = builder.config(key, str(value))
        builder = builder.remote(url) if parts.scheme == "sc" else builder.master(_master(url))
        self._counted = False
        try:
            session = _shared.begin(builder) if parts.scheme != "sc" else builder.getOrCreate()
        except (PySparkException, Py4JError, RuntimeError) as error:
            raise EngineError(
                f"Spark cannot be reached: {type(error).__name__}",
                code="cannot-connect",
                hint="check the master's host and port, and that Java 17 or later is installed",
            ) from None
        self._counted = parts.scheme != "sc"
        self._begin(session if parts.scheme == "sc" else session.newSession())

    def _begin(self, session: Any) -> None:
        # Any: classic and Connect sessions share no public class.
        self._session = session
        self._lock = threading.RLock()
        self._spelling = Spelling()
        self._views: set[str] = set()
        self._global: set[str] = set()
        for key, value in _SESSION.items():
            session.conf.set(key, value)

    @classmethod
    def of(cls, frame: Any) -> Relation:
        """Return a Spark frame as rows; its session stays its owner's.

        Any: a frame of classic Spark or of Connect.
        """
        engine = cls.__new__(cls)
        engine._counted = False
        session = frame.sparkSession
        if not hasattr(session, "newSession"):  # Connect has one session per connection
            engine._begin(session)
            return engine._viewed(frame)
        # Settings are ours, so the session is too; the frame is handed over by name.
        engine._begin(session.newSession())
        held = fresh_name("frame")
        with engine._explained():
            frame.createOrReplaceGlobalTempView(held)
            engine._global.add(held)
            return engine._viewed(engine._session.table(f"global_temp.{held}"))

    # -- bringing rows in ------------------------------------------------------------------------
    def table(self, name: str) -> Relation:
        """Return an existing table or view, by its (possibly schema-qualified) name."""
        candidates = [sql.named(name)]
        if "." in name:
            schema, _, plain = name.partition(".")
            candidates.append(sql.named(plain, schema=schema))
        for table in candidates:
            with self._lock, self._explained():
                if self._session.catalog.tableExists(table.sql(dialect=self.name)):
                    return self._viewed(self._session.table(table.sql(dialect=self.name)))
        raise InputError(f"Spark has no table {name!r}", code="unknown-table")

    def _viewed(self, frame: Any, name: str | None = None) -> Relation:
        """Return a frame as a view whose columns carry our spelling of their names."""
        names = list(frame.columns)
        require_distinct(names)
        held = name or fresh_name()
        with self._lock, self._explained():
            spelt = frame.toDF(*(self._spelling(column) for column in names)) if names else frame
            spelt.createOrReplaceTempView(f"`{held.replace('`', '``')}`")
        self._views.add(held)
        columns: list[exp.Expr] = [sql.column(column) for column in names]
        return self.relation(sql.select(sql.named(held), columns or [exp.Star()]))

    def load(self, rows: pa.Table, *, name: str | None = None) -> Relation:
        """Bring an Arrow table into the cluster as a temporary view."""
        require_distinct(rows.column_names)
        rows = loadable(rows)
        spelt = rows.rename_columns([self._spelling(column) for column in rows.column_names])
        with self._lock, self._explained():
            frame = self._session.createDataFrame(spelt)
            held = name or fresh_name()
            frame.createOrReplaceTempView(f"`{held.replace('`', '``')}`")
        self._views.add(held)
        columns = [sql.column(column) for column in rows.column_names]
        return Relation(self, sql.select(sql.named(held), columns), rows.schema)

    def scan(
        self, path: str | Path, *, format: str, options: Mapping[str, Any] | None = None
    ) -> Relation:
        """Return a file as rows: Parquet is read by the workers, which must see the path."""
        if format == "parquet":
            from pyarrow import ArrowException, parquet

            try:
                require_distinct(parquet.read_schema(path).names, file=path)
            except (ArrowException, OSError):
                raise InputError(
                    "this is not a readable Parquet file", code="bad-file", file=path
                ) from None
            with self._lock, self._explained():
                frame = self._session.read.parquet(Path(path).resolve().as_uri())
            return self._viewed(frame)
        with connect("duckdb://") as reader:
            return self.load(reader.fetch(reader.scan(path, format=format, options=options)))

    # -- running ---------------------------------------------------------------------------------
    def _frame(self, query: exp.Expr) -> Any:
        # Any: a frame of classic Spark or of Connect.
        statement, values = sql.bound(
            query, dialect=self.name, placeholder=_placeholder, spell=self._spelling
        )
        arguments = {f"p{place}": value for place, value in enumerate(values, start=1)}
        return self._session.sql(statement, args=arguments or None)

    def fetch(self, query: exp.Query | Relation) -> pa.Table:
        """Run a tree and return its rows."""
        tree = query.query if isinstance(query, Relation) else query
        with self._lock, self._explained():
            rows = self._frame(tree).toArrow()
        return rows.rename_columns([self._spelling.back(name) for name in rows.column_names])

    def batches(self, query: exp.Query | Relation) -> Iterator[pa.RecordBatch]:
        """Run a tree and yield its rows piece by piece, few partitions in memory at a time."""
        tree = query.query if isinstance(query, Relation) else query
        schema = self.schema(tree)
        with self._lock, self._explained():
            frame = self._frame(tree)
            yield from (
                _arrow_batches(frame, schema)
                if hasattr(frame, "_jdf")
                else _row_batches(frame, schema)
            )

    def schema(self, query: exp.Query) -> pa.Schema:
        """Return the columns that a tree gives."""
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        with self._lock, self._explained():
            found = to_arrow_schema(self._frame(query).schema, timezone="UTC")
        return pa.schema([pa.field(self._spelling.back(f.name), f.type) for f in found])

    def materialize(self, relation: Relation, *, name: str | None = None) -> Relation:
        """Run the query once and keep the rows on the workers.

        A lost worker loses its rows; what needs them then fails, and never runs on other rows.
        """
        held = name or fresh_name()
        with self._lock, self._explained():
            frame = self._frame(relation.query).localCheckpoint(eager=True)
            frame.createOrReplaceTempView(f"`{held.replace('`', '``')}`")
        self._views.add(held)
        columns = [sql.column(column) for column in relation.columns]
        return Relation(self, sql.select(sql.named(held), columns), relation.schema)

    def drop(self, relation: Relation) -> None:
        """Let go of what `materialize` or `load` kept."""
        table = relation.query.find(exp.Table)
        if table is not None and table.name in self._views:
            self._views.discard(table.name)
            with self._lock, self._explained():
                self._session.catalog.dropTempView(table.name)

    def store(self, relation: Relation, name: str) -> None:
        """Write rows to a table of the catalogue; it takes the old one's place when complete.

        Spark's catalogue knows no transactions: the old table steps aside under another name until
        the new one stands in its place, and comes back if it does not.
        """
        schema, _, plain = name.rpartition(".")
        target = sql.named(plain, schema=schema or None)
        fresh = sql.named(fresh_name("table"), schema=schema or None)
        aside = sql.named(fresh_name("aside"), schema=schema or None)
        with self._lock, self._explained():
            try:
                self._frame(relation.query).write.saveAsTable(fresh.sql(dialect=self.name))
                replaced = self._session.catalog.tableExists(target.sql(dialect=self.name))
                if replaced:
                    self._rename(target, aside)
                try:
                    self._rename(fresh, target)
                except PySparkException:
                    if replaced:
                        self._rename(aside, target)
                    raise
            except PySparkException:
                self._drop_table(fresh)
                raise
            if replaced:
                self._drop_table(aside)

    def _rename(self, old: exp.Table, new: exp.Table) -> None:
        action = exp.AlterRename(this=new.copy())
        self._frame(exp.Alter(this=old.copy(), kind="TABLE", actions=[action]))

    def _drop_table(self, table: exp.Table) -> None:
        self._frame(exp.Drop(this=table.copy(), kind="TABLE", exists=True))

    # -- Spark's own forms -----------------------------------------------------------------------
    def largest(self, fields: Mapping[str, exp.Expr], order: exp.Expr, n: int) -> list[exp.Expr]:
        """Return the list of the n rows with the largest order: a bounded heap, not a sort."""
        pairs = [part for name, value in fields.items() for part in (sql.text(name), value)]
        value = sql.call("named_struct", *pairs)
        by = sql.call("struct", order, *(field.copy() for field in fields.values()))
        heap = sql.call("max_by", value, by, exp.Literal.number(n))
        known = exp.Where(this=sql.is_known(order.copy()))
        return [sql.alias(exp.Filter(this=heap, expression=known), "l")]

    def element(self, name: str, place: int, fields: Sequence[str]) -> exp.Expr:
        """Return one field of one element of that list."""
        found = sql.call("get", sql.column("l"), exp.Literal.number(place - 1))
        return exp.Dot(this=found, expression=exp.to_identifier(name, quoted=True))

    def number(self, relation: Relation) -> Relation:
        """Return the rows held still and numbered 0 … n−1, without bringing them to one worker."""
        import numpy as np
        import pyarrow as pa

        if ROW in relation.columns:
            return relation
        marked = self.relation(
            sql.select(
                sql.subquery(relation.query, "t"),
                [
                    *map(sql.column, relation.columns),
                    sql.alias(sql.call("monotonically_increasing_id"), ROW),
                ],
            )
        )
        held = self.materialize(marked)
        bits = exp.Literal.number(_PLACE_BITS)
        part = sql.call("shiftright", sql.column(ROW, "t"), bits)
        counted = self.fetch(
            sql.select(
                sql.subquery(held.query, "t"),
                [sql.alias(part, "part"), sql.alias(sql.call("count", exp.Star()), "n")],
            ).group_by(part.copy())
        ).sort_by("part")
        sizes = counted.column("n").to_numpy()
        starts = self.load(
            pa.table({"part": counted.column("part"), "start": np.cumsum(sizes) - sizes})
        )
        place = exp.Sub(
            this=sql.column(ROW, "t"),
            expression=sql.call("shiftleft", part.copy(), bits.copy()),
        )
        row = exp.Add(this=sql.column("start", "s"), expression=exp.Paren(this=place))
        query = sql.select(
            sql.subquery(held.query, "t"),
            [*(sql.column(name, "t") for name in relation.columns), sql.alias(row, ROW)],
        ).join(
            sql.subquery(starts.query, "s"),
            on=exp.EQ(this=part.copy(), expression=sql.column("part", "s")),
        )
        return self.relation(query)

    def composed(self, value: exp.Expr) -> exp.Expr | None:
        """Return a text in Unicode's composed form: by the library that Spark collates with."""
        plain = exp.EQ(this=exp.ByteLength(this=value), expression=exp.Length(this=value.copy()))
        known = exp.Coalesce(this=value.copy(), expressions=[sql.text("")])  # Java takes no null
        composed = sql.call(
            "reflect",
            sql.text("com.ibm.icu.text.Normalizer"),
            sql.text("compose"),
            known,
            exp.false(),
        )
        missing = exp.Is(this=value.copy(), expression=exp.Null())
        return exp.Case().when(missing, exp.Null()).when(plain, value.copy()).else_(composed)

    #: Several exact distinct counts in one query make Spark write each row once for each of them.
    counts_together = False

    def estimated(self, value: exp.Expr) -> exp.Expr | None:
        """Return the number of different values by a sketch, within about 5 %."""
        return sql.call("approx_count_distinct", value)

    def digest(self, text: exp.Expr) -> exp.Expr:
        """Return the SHA-256 of a text."""
        return sql.call("sha2", text, exp.Literal.number(256))

    def from_hexadecimal(self, digits: exp.Expr) -> exp.Expr:
        """Return hexadecimal digits as a whole number."""
        return sql.bigint(sql.call("conv", digits, exp.Literal.number(16), exp.Literal.number(10)))

    def bits(self, value: exp.Expr) -> exp.Expr:
        """Return the bits of a double: Spark's SQL leaves them to Java, which takes no null."""
        known = exp.Coalesce(this=value, expressions=[sql.double(sql.number(0))])
        return sql.call(
            "reflect", sql.text("java.lang.Double"), sql.text("doubleToLongBits"), known
        )

    def microseconds(self, value: exp.Expr) -> exp.Expr:
        """Return microseconds since 1970."""
        return sql.call("unix_micros", value)

    def close(self) -> None:
        """Drop what is temporary; the last engine ends a session that was started here."""
        with self._lock, self._explained():
            for view in self._views:
                self._session.catalog.dropTempView(view)
            self._views.clear()
            for view in self._global:
                self._session.catalog.dropGlobalTempView(view)
            self._global.clear()
            if self._counted:
                self._counted = False
                _shared.end(self._session)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn Spark's errors into ours, without anything that could quote a row."""
        try:
            yield
        except PySparkException as error:
            kind = type(error).__name__
            condition = error.getCondition() or kind
            # Names, types and syntax are the query's own; anything else may quote a value.
            speaks = isinstance(error, AnalysisException | ParseException)
            first = (str(error).splitlines() or [""])[0]
            reason = first if speaks else f"{condition} in the data"
            raise EngineError(
                f"Spark failed: {reason}", code="engine-failed", kind=kind, condition=condition
            ) from None
        except Py4JError as error:  # what comes from below Spark SQL may quote a row: nothing of it
            kind = type(error).__name__
            raise EngineError(
                f"Spark failed: {kind} in the data", code="engine-failed", kind=kind, condition=kind
            ) from None


class _Shared:
    """The one Spark of this process: begun by the first engine, ended by the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._ours = False

    def require(self, master: str) -> None:
        """Refuse another cluster than the one this process speaks to already."""
        context = SparkContext._active_spark_context
        if context is not None and context.master != master:
            raise EngineError(
                f"this process already speaks to Spark at {context.master}",
                code="another-cluster",
                hint="close that engine first, or use another process",
            )

    def begin(self, builder: Any) -> Any:
        # Any: pyspark's builder and session.
        with self._lock:
            fresh = SparkContext._active_spark_context is None
            if fresh:
                tell("starting Spark: the first use of a cluster takes some seconds")
            session = builder.getOrCreate()
            if fresh:
                session.sparkContext.setLogLevel("ERROR")
                self._ours, self._users = True, 0
            self._users += 1
            return session

    def end(self, session: Any) -> None:
        with self._lock:
            self._users -= 1
            if self._ours and self._users == 0:
                self._ours = False
                session.stop()


_shared = _Shared()


def _master(url: str) -> str:
    return "local[*]" if urlsplit(url).netloc == "local" else url


def _arrow_batches(frame: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows as the workers' Arrow batches, partition after partition.

    Rows as Python objects take twenty times as long. Any: classic Spark's frame.
    """
    import pyarrow as pa
    from pyspark.core.rdd import RDD
    from pyspark.serializers import NoOpSerializer

    context = frame.sparkSession.sparkContext
    pieces = RDD(frame._jdf.toArrowBatchRdd().toJavaRDD(), context, NoOpSerializer())
    for piece in pieces.toLocalIterator(prefetchPartitions=True):
        yield pa.ipc.read_record_batch(pa.py_buffer(piece), schema)


def _row_batches(frame: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a frame of Spark Connect, which has no other way to take them in pieces."""
    import pyarrow as pa

    rows = frame.toLocalIterator(prefetchPartitions=True)
    while piece := list(itertools.islice(rows, 1 << 16)):
        columns = list(zip(*piece, strict=True)) or [()] * len(schema)
        arrays = [
            pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _placeholder(place: int) -> exp.Expr:
    return exp.Placeholder(this=f"p{place}")
