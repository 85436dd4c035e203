"""DuckDB: the engine inside the process, also for files larger than memory."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import duckdb
from sqlglot import exp

from discreet.data.addresses import database_file
from discreet.data.engines import sql
from discreet.data.engines.base import Engine, Relation, bounded, fresh_name, kind_of
from discreet.data.engines.driver import note_fetched
from discreet.data.engines.faults import changed_table, disk_full, is_full
from discreet.data.engines.interruption import ended_by, interrupted
from discreet.data.engines.spelling import Spelling, require_distinct
from discreet.errors import EngineError, InputError
from discreet.progress import silent, watcher

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DuckDB"]

#: Seconds between two looks at how far a file is read.
_LOOK = 0.5
# Errors whose text can quote a row of the data; only their kind is passed on.
_TELLING = (
    duckdb.ConversionException,
    duckdb.ConstraintException,
    duckdb.InvalidInputException,
    duckdb.OutOfRangeException,
    duckdb.TypeMismatchException,
)


class DuckDB(Engine):
    """An embedded DuckDB: in memory (`duckdb://`) or a file (`duckdb:///path.db`).

    Parameters
    ----------
    url
        Where the database is; settings may follow as in `duckdb:///path.db?access_mode=read_only`.
    options
        Settings of DuckDB, such as `memory_limit="4GB"`, `temp_directory` and `threads`.
    """

    name = "duckdb"

    def __init__(self, url: str = "duckdb://", **options: Any) -> None:
        path = database_file(url) or ":memory:"
        settings = {
            # A table name must never find a Python variable or fetch an extension.
            "python_enable_replacements": False,
            "autoinstall_known_extensions": False,
            **dict(parse_qsl(urlsplit(url).query)),
            **options,
        }
        self._lock = threading.RLock()
        self._spelling = Spelling(fold_case=True)
        self._registered: set[str] = set()
        try:
            self._connection = duckdb.connect(path, config=settings)
        except duckdb.Error as error:
            raise EngineError(
                f"DuckDB cannot open {path}: {_first_line(error)}", code="cannot-connect", file=path
            ) from None

    # -- bringing rows in ------------------------------------------------------------------------
    def table(self, name: str) -> Relation:
        """Return an existing table or view, by its (possibly schema-qualified) name."""
        *schema, plain = name.split(".", 1) if "." in name else [name]
        found = self._existing(sql.named(name))
        if found is None and schema:
            found = self._existing(sql.named(plain, schema=schema[0]))
        if found is None:
            raise InputError(f"DuckDB has no table {name!r}", code="unknown-table")
        return found

    def _existing(self, table: exp.Table) -> Relation | None:
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=table))
        with self._lock, self._explained():
            try:
                names = self._run(query.limit(0)).to_arrow_table().column_names
            except duckdb.CatalogException:
                return None
            except duckdb.PermissionException:
                raise InputError(
                    f"{table.name!r} is a view that reads files outside of its database",
                    code="not-allowed",
                    hint="a policy may use tables; for views, allow the database: --allow FILE",
                ) from None
        return self._renamed(table, names)

    def _renamed(self, source: exp.Expr, names: Sequence[str]) -> Relation:
        """Return a source whose columns carry our spelling of their names, by position."""
        columns = [exp.to_identifier(name, quoted=True) for name in names]
        source = source.copy()
        source.set(
            "alias", exp.TableAlias(this=exp.to_identifier("t", quoted=True), columns=columns)
        )
        return self.relation(sql.select(source, [sql.column(name) for name in names]))

    def load(self, rows: pa.Table, *, name: str | None = None) -> Relation:
        """Bring an Arrow table into the engine as a view on its memory, without copying."""
        require_distinct(rows.column_names)
        held = name or fresh_name()
        spelt = rows.rename_columns([self._spelling(column) for column in rows.column_names])
        with self._lock, self._explained():
            self._connection.register(held, spelt)
        self._registered.add(held)
        columns = [sql.column(column) for column in rows.column_names]
        return Relation(self, sql.select(sql.named(held), columns), rows.schema, rows.num_rows)

    def scan(
        self, path: str | Path, *, format: str, options: Mapping[str, Any] | None = None
    ) -> Relation:
        """Return a file as rows; Parquet and Arrow are read when asked for, CSV once."""
        path = Path(path)
        if format == "parquet":
            from pyarrow import parquet

            if path.is_dir():
                return self._parquet_folder(path)
            with _file_errors(path, "Parquet"):
                names = parquet.read_schema(path).names
            require_distinct(names, file=path)
            return self._renamed(_table_function("read_parquet", path), names)
        if format == "arrow":
            from pyarrow import dataset

            with _file_errors(path, "Arrow"):
                rows = dataset.dataset(path, format="ipc")
            require_distinct(rows.schema.names, file=path)
            return self._registered_file(rows)
        from discreet.data.engines.csv import read_csv

        given = dict(options or {})
        texts = given.pop("texts", ())
        held, form = read_csv(self, path, given, texts=texts)
        require_distinct(form.names, file=path)
        return self._renamed(sql.named(held), form.names)

    def _parquet_folder(self, path: Path) -> Relation:
        """Return the Parquet files of a folder as one; folders such as year=2024 are columns."""
        from pyarrow import dataset

        from discreet.data.parts import part_files

        files = [str(file) for file in part_files(path, "parquet")]
        with _file_errors(path, "Parquet"):
            rows = dataset.dataset(
                files, format="parquet", partitioning="hive", partition_base_dir=str(path)
            )
        require_distinct(rows.schema.names, file=path)
        return self._registered_file(rows)

    def _registered_file(self, rows: Any) -> Relation:
        """Return a dataset of pyarrow as rows. Any: pyarrow is imported where it is used."""
        held = fresh_name("file")
        with self._lock, self._explained():
            self._connection.register(held, rows)
        self._registered.add(held)
        return self._renamed(sql.named(held), rows.schema.names)

    # -- running ---------------------------------------------------------------------------------
    def render(self, query: exp.Expr) -> tuple[str, list[Any]]:
        """Return a tree as DuckDB's SQL with numbered parameters, and their values."""
        return sql.bound(query, dialect=self.name, placeholder=_placeholder, spell=self._spelling)

    def _run(self, query: exp.Expr) -> Any:
        # Any: DuckDB's relation class has no annotations.
        statement, values = self.render(query)
        return self._connection.sql(statement, params=values or None)

    def fetch(self, query: exp.Query | Relation) -> pa.Table:
        """Run a tree and return its rows."""
        tree = bounded(query)
        with self._lock, self._explained(), ended_by(self._connection.interrupt):
            rows = self._run(tree).to_arrow_table()
        note_fetched(rows, kind_of(query))
        return rows.rename_columns([self._spelling.back(name) for name in rows.column_names])

    def batches(self, query: exp.Query | Relation) -> Iterator[pa.RecordBatch]:
        """Run a tree and yield its rows piece by piece."""
        tree = query.query if isinstance(query, Relation) else query
        with self._lock, self._explained():
            reader = self._run(tree).to_arrow_reader(1 << 17)
            names = [self._spelling.back(name) for name in reader.schema.names]
            try:
                for batch in reader:
                    yield batch.rename_columns(names)
            finally:
                reader.close()

    def schema(self, query: exp.Query) -> pa.Schema:
        """Return the columns that a tree gives."""
        empty = exp.Select(expressions=[exp.Star()], from_=exp.From(this=sql.subquery(query, "t")))
        return self.fetch(empty.limit(0)).schema

    def execute(self, statement: exp.Expr) -> None:
        """Run a statement that gives no rows."""
        text, values = self.render(statement)
        with self._lock, self._explained():
            self._connection.execute(text, values)
            self._connection.complete()

    def create(self, statement: str, values: Sequence[Any]) -> str:
        """Keep the rows of one of our own statements in a temporary table; return its name.

        DuckDB's errors about the values pass as they are: the caller knows what they mean. Any: values
        to bind.
        """
        held = fresh_name()
        name = exp.to_identifier(held, quoted=True).sql(self.name)
        with self._lock, self._watched():
            try:
                self._connection.execute(f"CREATE TEMPORARY TABLE {name} AS {statement}", values)
                self._connection.complete()
            except (duckdb.OutOfMemoryException, duckdb.IOException, duckdb.InterruptException):
                with self._explained():
                    raise
        return held

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Show how far the reading of a file is, to whoever watches."""
        watch, over = watcher(), threading.Event()
        if watch is silent:
            yield
            return

        with contextlib.suppress(duckdb.Error):  # settings may be locked
            # How far a statement is can be asked then; DuckDB itself prints nothing.
            self._connection.execute("SET enable_progress_bar = true")
            self._connection.execute("SET enable_progress_bar_print = false")

        def look() -> None:
            while not over.wait(_LOOK):
                share = self._connection.query_progress()
                if share > 0:
                    watch("per cent of the file read", min(round(share), 100), 100)

        looking = threading.Thread(target=look, daemon=True)
        looking.start()
        try:
            yield
        finally:
            over.set()
            looking.join()

    def materialize(self, relation: Relation, *, name: str | None = None) -> Relation:
        """Run the query once and keep the rows in a temporary table."""
        held = name or fresh_name()
        self.execute(_create(held, relation.query, temporary=True))
        columns = [sql.column(column) for column in relation.columns]
        query = sql.select(sql.named(held), columns)
        kept = Relation(self, query, relation.schema, relation.rows)
        # A table knows how many rows it has; a query would have to be run.
        return kept if kept.rows is not None else dataclasses.replace(kept, rows=self.count(kept))

    def drop(self, relation: Relation) -> None:
        """Let go of what `materialize` or `load` kept."""
        table = relation.query.find(exp.Table)
        if table is None or not table.name.startswith("discreet_"):
            return
        if table.name in self._registered:
            self._registered.discard(table.name)
            with self._lock, self._explained():
                self._connection.unregister(table.name)
        else:
            self.execute(exp.Drop(this=sql.named(table.name), kind="TABLE", exists=True))

    def store(self, relation: Relation, name: str) -> None:
        """Write rows to a table of the database, all or nothing."""
        schema, _, plain = name.rpartition(".")
        statement = _create(plain, relation.query, temporary=False)
        statement.set("this", sql.named(plain, schema=schema or None))
        statement.set("replace", True)
        self.execute(statement)

    # -- DuckDB's own forms ------------------------------------------------------------------------
    def composed(self, value: exp.Expr) -> exp.Expr | None:
        """Return a text in Unicode's composed form."""
        return sql.call("nfc_normalize", value)

    def largest(self, fields: Mapping[str, exp.Expr], order: exp.Expr, n: int) -> list[exp.Expr]:
        """Return the list of the n rows with the largest order: a bounded heap, not a sort."""
        if len(fields) == 1:  # amounts alone: a heap of numbers is cheaper than one of rows
            amount = next(iter(fields.values()))
            # Of two amounts that differ in sign alone the positive one comes first, as elsewhere.
            below = exp.Mul(this=amount.copy(), expression=sql.number(-(1 - 2.0**-53)))
            key = exp.Case().when(exp.LT(this=amount.copy(), expression=sql.number(0)), below)
            heap = sql.call(
                "arg_max", amount.copy(), key.else_(amount.copy()), exp.Literal.number(n)
            )
            return [sql.alias(heap, "l")]
        value = sql.call("row", order, *(field.copy() for field in fields.values()))
        known = exp.Where(this=sql.is_known(order.copy()))
        heap = sql.call("max", value, exp.Literal.number(n))
        return [sql.alias(exp.Filter(this=heap, expression=known), "l")]

    def element(self, name: str, place: int, fields: Sequence[str]) -> exp.Expr:
        """Return one field of one element of that list."""
        found = sql.call("list_extract", sql.column("l"), exp.Literal.number(place))
        if len(fields) == 1:
            return found
        # What the rows are ordered by stands before the fields.
        at = exp.Literal.number(list(fields).index(name) + 2)
        return sql.call("struct_extract_at", found, at)

    def estimated(self, value: exp.Expr) -> exp.Expr | None:
        """Return the number of different values by a sketch, within some per cent."""
        return sql.call("approx_count_distinct", value)

    def piece(self, value: exp.Expr, pieces: int) -> exp.Expr | None:
        """Return the remainder of DuckDB's own hash."""
        return exp.Mod(this=sql.call("hash", value), expression=sql.number(pieces))

    def digest(self, text: exp.Expr) -> exp.Expr:
        """Return the SHA-256 of a text."""
        return sql.call("sha256", text)

    def from_hexadecimal(self, digits: exp.Expr) -> exp.Expr:
        """Return hexadecimal digits as a whole number."""
        return sql.bigint(exp.DPipe(this=sql.text("0x"), expression=digits))

    def bits(self, value: exp.Expr) -> exp.Expr:
        """Return the bits of a double."""
        nothing = sql.double(sql.text("nan"))
        known = exp.Case(default=value).when(sql.call("isnan", value.copy()), nothing)
        return sql.bigint(exp.Cast(this=known, to=exp.DataType.build("bit", dialect=self.name)))

    def microseconds(self, value: exp.Expr) -> exp.Expr:
        """Return microseconds since 1970."""
        return sql.call("epoch_us", value)

    def interrupt(self) -> None:
        """End what is running in another thread; it fails there."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close the database; everything temporary goes with it."""
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn DuckDB's errors into ours, without anything that could quote a row."""
        try:
            yield
        except duckdb.InterruptException:
            raise interrupted() from None
        except duckdb.OutOfMemoryException:
            raise EngineError(
                "DuckDB ran out of the memory it may use",
                code="out-of-memory",
                hint="raise memory_limit or give a temp_directory with more space",
            ) from None
        except _TELLING as error:
            kind = type(error).__name__.removesuffix("Exception")
            raise EngineError(
                f"DuckDB failed: {kind} error in the data", code="engine-failed", kind=kind
            ) from None
        except (duckdb.BinderException, duckdb.CatalogException) as error:
            raise changed_table("DuckDB", _first_line(error)) from None
        except duckdb.Error as error:
            kind = type(error).__name__.removesuffix("Exception")
            if isinstance(error, duckdb.IOException) and is_full(error):
                raise _no_room() from None
            raise EngineError(
                f"DuckDB failed: {_first_line(error)}", code="engine-failed", kind=kind
            ) from None
        except OSError as error:  # rows that Arrow reads piece by piece
            if is_full(error):
                raise _no_room() from None
            raise EngineError(
                "DuckDB failed: the rows cannot be read to their end",
                code="engine-failed",
                kind="IO",
            ) from None


def _no_room() -> EngineError:
    return disk_full(
        "on the disk that DuckDB writes to",
        "free some of it, or name another folder: engine=connect('duckdb://', temp_directory=…)",
    )


def _placeholder(place: int) -> exp.Expr:
    return exp.Parameter(this=exp.Literal.number(place))


def _create(name: str, query: exp.Query, *, temporary: bool) -> exp.Create:
    properties = exp.Properties(expressions=[exp.TemporaryProperty()]) if temporary else None
    return exp.Create(
        this=sql.named(name), kind="TABLE", expression=query.copy(), properties=properties
    )


def _table_function(name: str, path: Path) -> exp.Table:
    return exp.Table(this=sql.call(name, sql.text(str(path))))


@contextlib.contextmanager
def _file_errors(path: Path, kind: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError):
        raise InputError(
            f"this is not a readable {kind} file",
            code="bad-file",
            hint="say format=… if the suffix is misleading",
            file=path,
        ) from None


def _first_line(error: Exception) -> str:
    # The text up to the first line break names objects; a quoted statement follows it.
    line = str(error).splitlines()[0] if str(error) else type(error).__name__
    return re.sub(r"\s+", " ", line)
