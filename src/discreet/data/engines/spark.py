"""Spark: records that live on a cluster."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no annotations
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.base import (
    ROW,
    Engine,
    Relation,
    bounded,
    connect,
    fresh_name,
    kind_of,
)
from discreet.data.engines.driver import note_fetched
from discreet.data.engines.results import file_format, loadable
from discreet.data.engines.sharing import shared
from discreet.data.engines.spark_address import Location, SparkAddress, location
from discreet.data.engines.spark_faults import FAULTS, explained, forget_dead_driver
from discreet.data.engines.spark_files import replace_folder
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
        The master, and options as in `spark://host:7077?warehouse=/data&spark.executor.memory=4g`
        (see `spark_address`); `sc://host:port` speaks Spark Connect.
    options
        The same by their names, as `connect(url, **{"spark.executor.memory": "4g"})`.
    """

    name = "spark"
    writes = "parquet"
    _warehouse: str | None = None

    def __init__(self, url: str, **options: Any) -> None:
        address = SparkAddress.of(url, options)
        if not address.is_connect:
            _shared.require(_master(address.master))
        builder = SparkSession.builder.appName("discreet")
        for key, value in (_SETTINGS | dict(address.settings)).items():
            builder = builder.config(key, value)
        builder = (
            builder.remote(address.master)
            if address.is_connect
            else builder.master(_master(address.master))
        )
        self._counted = False
        try:
            session = (
                builder.getOrCreate()
                if address.is_connect
                else _shared.begin(builder, address.warehouse)
            )
        except (PySparkException, Py4JError, RuntimeError) as error:
            raise EngineError(
                f"Spark cannot be reached: {type(error).__name__}",
                code="cannot-connect",
                hint="check the master's host and port, and that Java 17 or later is installed",
            ) from None
        self._counted = not address.is_connect
        self._warehouse = address.warehouse or (None if address.is_connect else _shared.warehouse)
        self._begin(session if address.is_connect else session.newSession())
        self._require_catalogue(address)

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

    def _require_catalogue(self, address: SparkAddress) -> None:
        """Refuse another metastore than the one this process has begun with: Spark has only one."""
        wanted = address.settings.get("spark.sql.catalogImplementation")
        if wanted is not None and wanted != self._catalogue():
            self.close()
            raise EngineError(
                f"Spark runs here with the catalogue {self._catalogue()}, not {wanted}",
                code="another-cluster",
                hint="close that engine first, or use another process",
            )

    def _catalogue(self) -> str:
        return str(self._session.conf.get("spark.sql.catalogImplementation", "in-memory"))

    # -- bringing rows in ------------------------------------------------------------------------
    def table(self, name: str) -> Relation:
        """Return a table or view by its (possibly qualified) name, or files by their path.

        A name that the catalogue does not know is looked for among the folders of the warehouse.
        """
        found = location(name)
        if found is not None:
            return self._located(found, name)
        candidates = [sql.named(name)]
        if "." in name:
            schema, _, plain = name.partition(".")
            candidates.append(sql.named(plain, schema=schema))
        for table in candidates:
            with self._lock, self._explained():
                if self._session.catalog.tableExists(table.sql(dialect=self.name)):
                    return self._viewed(self._session.table(table.sql(dialect=self.name)))
        if self._warehouse is not None:
            return self._located(self._kept(name), name)
        raise InputError(
            f"Spark has no table {name!r}",
            code="unknown-table",
            hint="say where tables are, spark://…?warehouse=/folder#table or ?metastore=thrift://…, "
            "or write a path, spark://…#parquet:/folder",
        )

    def _kept(self, name: str) -> Location:
        """Return the folder of a table in the warehouse, as Spark itself names it."""
        schema, _, plain = name.rpartition(".")
        if any(part in ("", ".", "..") or "/" in part or "\\" in part for part in name.split(".")):
            raise InputError(
                f"{name!r} cannot be the name of a table",
                code="bad-name",
                hint="write table or schema.table",
            )
        folders = [plain] if schema in ("", "default") else [f"{schema.lower()}.db", plain]
        return Location("parquet", "/".join([str(self._warehouse), *folders]))

    def _located(self, files: Location, name: str) -> Relation:
        """Return files that the workers read."""
        folder = files.folder
        try:
            place = files.place if folder is None else folder.absolute().as_uri()
            with self._lock:
                frame = self._session.read.format(files.format).load(place)
        except (PySparkException, Py4JError) as error:
            told = str(error)  # looked at, never shown
            if "PATH_NOT_FOUND" in told:
                raise InputError(f"Spark has no table {name!r}", code="unknown-table") from None
            if "DATA_SOURCE_NOT_FOUND" in told:
                raise EngineError(
                    f"Spark has no reader for {files.format}",
                    code="missing-reader",
                    hint="name its package in the address: "
                    "?spark.jars.packages=group:artifact:version",
                ) from None
            with self._explained():
                raise
        return self._viewed(frame)

    def _viewed(self, frame: Any, name: str | None = None) -> Relation:
        """Return a frame as a view whose columns carry our spelling of their names."""
        names = list(frame.columns)
        require_distinct(names)
        held = name or fresh_name()
        with self._lock, self._explained():
            spelt = frame.toDF(*(self._spelling(column) for column in names)) if names else frame
            spelt.createOrReplaceTempView(_quoted(held))
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
            frame.createOrReplaceTempView(_quoted(held))
        self._views.add(held)
        columns = [sql.column(column) for column in rows.column_names]
        return Relation(self, sql.select(sql.named(held), columns), rows.schema, rows.num_rows)

    def scan(
        self, path: str | Path, *, format: str, options: Mapping[str, Any] | None = None
    ) -> Relation:
        """Return a file as rows: Parquet is read by the workers, which must see the path."""
        if format == "parquet":
            from pyarrow import ArrowException, parquet

            from discreet.data.parts import part_files

            try:
                first = part_files(Path(path), "parquet")[0] if Path(path).is_dir() else path
                require_distinct(parquet.read_schema(first).names, file=path)
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
            shared(query), dialect=self.name, placeholder=_placeholder, spell=self._spelling
        )
        arguments = {f"p{place}": value for place, value in enumerate(values, start=1)}
        return self._session.sql(statement, args=arguments or None)

    def fetch(self, query: exp.Query | Relation) -> pa.Table:
        """Run a tree and return its rows."""
        tree = bounded(query)
        with self._lock, self._explained():
            rows = self._frame(tree).toArrow()
        note_fetched(rows, kind_of(query))
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
            frame.createOrReplaceTempView(_quoted(held))
        self._views.add(held)
        columns = [sql.column(column) for column in relation.columns]
        query = sql.select(sql.named(held), columns)
        return Relation(self, query, relation.schema, relation.rows)

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
        the new one stands in its place, and comes back if it does not. Without a metastore the
        table is a folder of the warehouse, where other processes find it.
        """
        if self._is_forgotten(name):
            if self._warehouse is None:
                raise InputError(
                    "Spark keeps its tables in memory here: nobody would find this one again",
                    code="in-memory-catalogue",
                    hint="say where tables are kept: spark://…?warehouse=/folder, or "
                    "?metastore=thrift://host:9083",
                )
            folder = self._kept(name).folder
            if folder is None:
                raise InputError(
                    "without a metastore, tables are kept in folders of this machine alone",
                    code="in-memory-catalogue",
                    hint="name a metastore: spark://…?metastore=thrift://host:9083",
                )
            with self._lock, self._explained():
                replace_folder(self._named(relation), folder)
            return
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

    def _is_forgotten(self, name: str) -> bool:
        """Whether the catalogue of a table ends with this process."""
        if name.count(".") > 1:  # a catalogue of its own, as Iceberg's
            own = self._session.conf.get(f"spark.sql.catalog.{name.partition('.')[0]}", None)
            if own is not None:
                return False
        return self._catalogue() == "in-memory"

    def _named(self, relation: Relation) -> Any:
        """Return the rows as a frame with the columns' own names. Any: classic or Connect."""
        frame = self._frame(relation.query)
        return frame.toDF(*relation.columns) if relation.columns else frame

    def write(self, relation: Relation, target: str | Path, *, format: str | None = None) -> None:
        """Write rows: Parquet by the workers, as a folder of parts; other files through here.

        Rows with numbers are written in their order, part after part.
        """
        path = Path(target)
        if format == "table" or file_format(path, format) != "parquet":
            super().write(relation, target, format=format)
            return
        kept = [name for name in relation.columns if name != ROW]
        with self._lock, self._explained():
            frame = self._frame(relation.query)
            if ROW in relation.columns:
                frame = frame.orderBy(f"`{self._spelling(ROW)}`")
            chosen = [_quoted(self._spelling(name)) for name in kept]
            replace_folder(frame.select(*chosen).toDF(*kept) if kept else frame, path)

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
        if ROW in relation.columns:
            return relation
        with self._lock, self._explained():
            return self._counted_off(self._frame(relation.query), relation.columns, ROW, 0)

    def rank(self, relation: Relation, column: str, *, into: str = "__rank") -> Relation:
        """Add the rank of a column's values: each worker sorts and counts a range of them."""
        from pyspark.sql.functions import col

        relation.require(column, ROW)
        kept = [name for name in relation.columns if name != into]
        with self._lock, self._explained():
            frame = self._frame(relation.query)
            first = col(_quoted(self._spelling(column))).asc_nulls_last()
            ordered = frame.orderBy(first, col(_quoted(self._spelling(ROW))))
            return self._counted_off(ordered, kept, into, 1)

    def _counted_off(self, frame: Any, columns: Sequence[str], into: str, start: int) -> Relation:
        """Return the rows of a frame held still and numbered in its order. Any: as elsewhere."""
        import numpy as np
        import pyarrow as pa
        from pyspark.sql.functions import monotonically_increasing_id

        marked = frame.withColumn(self._spelling(into), monotonically_increasing_id())
        held = self._viewed(marked.localCheckpoint(eager=True))
        bits = exp.Literal.number(_PLACE_BITS)
        part = sql.call("shiftright", sql.column(into, "t"), bits)
        counted = self.fetch(
            sql.select(
                sql.subquery(held.query, "t"),
                [sql.alias(part, "part"), sql.alias(sql.call("count", exp.Star()), "n")],
            ).group_by(part.copy())
        ).sort_by("part")
        sizes = counted.column("n").to_numpy()
        before = np.cumsum(sizes) - sizes + start
        starts = self.load(pa.table({"part": counted.column("part"), "start": before}))
        place = exp.Sub(
            this=sql.column(into, "t"),
            expression=sql.call("shiftleft", part.copy(), bits.copy()),
        )
        row = exp.Add(this=sql.column("start", "s"), expression=exp.Paren(this=place))
        query = sql.select(
            sql.subquery(held.query, "t"),
            [*(sql.column(name, "t") for name in columns), sql.alias(row, into)],
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
        except FAULTS as error:
            raise explained(error) from None


class _Shared:
    """The one Spark of this process: begun by the first engine, ended by the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._ours = False
        #: The folder of tables that the first engine named.
        self.warehouse: str | None = None

    def require(self, master: str) -> None:
        """Refuse another cluster than the one this process speaks to already."""
        forget_dead_driver()
        context = SparkContext._active_spark_context
        if context is not None and context.master != master:
            raise EngineError(
                f"this process already speaks to Spark at {context.master}",
                code="another-cluster",
                hint="close that engine first, or use another process",
            )

    def begin(self, builder: Any, warehouse: str | None) -> Any:
        # Any: pyspark's builder and session.
        with self._lock:
            fresh = SparkContext._active_spark_context is None
            if fresh:
                tell("starting Spark: the first use of a cluster takes some seconds")
            session = builder.getOrCreate()
            if fresh:
                session.sparkContext.setLogLevel("ERROR")
                self._ours, self._users, self.warehouse = True, 0, warehouse
            self._users += 1
            return session

    def end(self, session: Any) -> None:
        with self._lock:
            self._users -= 1
            if self._ours and self._users == 0:
                self._ours, self.warehouse = False, None
                session.stop()


_shared = _Shared()


def _master(url: str) -> str:
    return "local[*]" if url.partition("://")[2] == "local" else url


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


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
