"""PostgreSQL: records that live on a server."""

from __future__ import annotations

import contextlib
import getpass
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, LiteralString
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql as psql
from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.base import Engine, Relation, bounded, connect, fresh_name, kind_of
from discreet.data.engines.driver import note_fetched
from discreet.data.engines.faults import local_room
from discreet.data.engines.interruption import ended_by
from discreet.data.engines.meaning import collated
from discreet.data.engines.postgres_session import Session
from discreet.data.engines.postgres_versions import Versions
from discreet.data.engines.results import loadable
from discreet.data.engines.spelling import Spelling, require_distinct
from discreet.errors import EngineError, InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Postgres", "parameters", "sealed"]

# Marks a column whose numbers have no declared size.
_LOOSE = {b"discreet": b"numeric of any size"}

# Values for parameters that libpq would otherwise take from environment, home or Kerberos tickets.
# An empty password and a password file that cannot exist keep PGPASSWORD and ~/.pgpass out.
_SEALED = {
    "password": "",
    "passfile": "/dev/null/none",
    "sslcertmode": "disable",
    "gssencmode": "disable",
    "require_auth": "password,md5,scram-sha-256,none",
    "client_encoding": "UTF8",
    "application_name": "discreet",
    "connect_timeout": "10",
    "min_protocol_version": "3.0",
    "max_protocol_version": "3.0",
}


def parameters(address: str) -> dict[str, str]:
    """Return what an address says, as libpq reads it; the environment adds nothing.

    >>> parameters("postgresql://ana@db.example/stats?host=evil.example")["host"]
    'evil.example'
    """
    try:
        found = psycopg.conninfo.conninfo_to_dict(address.partition("#")[0])
    except psycopg.ProgrammingError:
        raise InputError(
            "the address of the database cannot be read",
            code="malformed-address",
            hint="write postgresql://user@host:port/database#table",
        ) from None
    return {name: str(value) for name, value in found.items()}


def sealed(given: Mapping[str, str], table: str = "") -> str:
    """Return an address with all that it says and nothing left for libpq to find elsewhere.

    Whatever libpq would read from environment variables, password files, client certificates or
    tickets is given explicitly, mostly as nothing.
    """
    said = dict(given)
    if said.get("sslcert"):
        said.setdefault("sslcertmode", "allow")
    for option in psycopg.pq.Conninfo.get_defaults():
        name = option.keyword.decode()
        if name == "service" or name in said:
            continue
        if name in _SEALED:
            said[name] = _SEALED[name]
        elif option.envvar and name not in ("user", "dbname"):
            said[name] = (option.compiled or b"").decode()
    said.setdefault("user", getpass.getuser())
    said.setdefault("dbname", said["user"])
    return f"postgresql://?{urlencode(said, quote_via=quote)}" + (f"#{table}" if table else "")


class Postgres(Engine):
    """A PostgreSQL server, by a connection URL as libpq reads it.

    Rows come and go by COPY. Names beyond 63 bytes are spelt shorter inside the server.

    Parameters
    ----------
    url
        `postgresql://user@host:port/database`.
    options
        Connection parameters of libpq, such as `connect_timeout`.
    """

    name = "postgres"

    def __init__(self, url: str, **options: Any) -> None:
        self._spelling = Spelling(limit=63)
        self._versions = Versions()
        try:
            self._session = Session(url, options)
        except psycopg.Error as error:
            raise EngineError(
                f"PostgreSQL cannot be reached: {type(error).__name__}",
                code="cannot-connect",
                hint="check host, port, database and password in the URL",
            ) from None

    # -- bringing rows in ------------------------------------------------------------------------
    def table(self, name: str) -> Relation:
        """Return an existing table or view, by its (possibly schema-qualified) name."""
        return self._table(name, None)

    def columns_of_table(self, name: str, columns: Sequence[str]) -> Relation:
        """Return some columns of an existing table, naming no other to the server."""
        return self._table(name, columns)

    def _table(self, name: str, columns: Sequence[str] | None) -> Relation:
        candidates = [sql.named(name)]
        if "." in name:
            schema, _, plain = name.partition(".")
            candidates.append(sql.named(plain, schema=schema))
        for table in candidates:
            wanted = [exp.Star()] if columns is None else [sql.column(c) for c in columns]
            try:
                found = self.schema(sql.select(table, wanted))
            except EngineError as error:
                if error.facts.get("sqlstate") == "42703":
                    raise _no_such_column(name, error) from None
                if error.code == "changed-table":
                    continue
                raise
            return Relation(self, sql.select(table, map(_as_meant, found)), found)
        raise InputError(f"PostgreSQL has no table {name!r}", code="unknown-table")

    def load(self, rows: pa.Table, *, name: str | None = None) -> Relation:
        """Copy an Arrow table into a temporary table."""
        require_distinct(rows.column_names)
        held = name or fresh_name()
        rows = loadable(rows)
        definitions = [
            psql.SQL("{} {}").format(
                psql.Identifier(self._spelling(field.name)), psql.SQL(_declared(field.type))
            )
            for field in rows.schema
        ]
        create = psql.SQL("CREATE TEMPORARY TABLE {} ({})").format(
            psql.Identifier(held), psql.SQL(", ").join(definitions)
        )
        copy = psql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(psql.Identifier(held))
        analyze = psql.SQL("ANALYZE {}").format(psql.Identifier(held))

        def loaded(connection: psycopg.Connection[Any]) -> None:
            with connection.transaction():
                connection.execute(create)
                if rows.num_columns:
                    with connection.cursor().copy(copy) as stream:
                        _copy_in(rows, stream)
                connection.execute(analyze)
            self._session.hold(held)

        self._session.run(loaded)
        columns = [sql.column(column) for column in rows.column_names]
        return Relation(self, sql.select(sql.named(held), columns), rows.schema, rows.num_rows)

    def scan(
        self, path: str | Path, *, format: str, options: Mapping[str, Any] | None = None
    ) -> Relation:
        """Copy a file into a temporary table, piece by piece."""
        with connect("duckdb://") as reader:
            rows = reader.scan(path, format=format, options=options)
            held: Relation | None = None
            for batch in reader.batches(rows):
                import pyarrow as pa

                piece = pa.Table.from_batches([batch])
                if held is None:
                    held = self.load(piece)
                else:
                    self._append(held, piece)
            return held or self.load(rows.schema.empty_table())

    def _append(self, held: Relation, rows: pa.Table) -> None:
        table = held.query.find(exp.Table)
        assert table is not None
        copy = psql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(psql.Identifier(table.name))

        def appended(connection: psycopg.Connection[Any]) -> None:
            with connection.cursor().copy(copy) as stream:
                _copy_in(loadable(rows), stream)

        self._session.run(appended, again=False, needs={table.name})

    # -- running ---------------------------------------------------------------------------------
    def render(self, query: exp.Expr) -> tuple[str, list[Any]]:
        """Return a tree as PostgreSQL's SQL with numbered parameters, and their values."""
        return sql.bound(query, dialect=self.name, placeholder=_placeholder, spell=self._spelling)

    def schema(self, query: exp.Query) -> pa.Schema:
        """Return the columns that a tree gives."""
        import pyarrow as pa

        statement, values = self.render(query.limit(0))

        def described(connection: psycopg.Connection[Any]) -> list[psycopg.Column]:
            with psycopg.RawCursor(connection) as cursor:
                cursor.execute(statement.encode(), values)
                return cursor.description or []

        return pa.schema(
            [
                pa.field(
                    self._spelling.back(column.name),
                    _arrow_type(column),
                    metadata=_LOOSE if _is_loose(column) else None,
                )
                for column in self._session.run(described, needs=_tables(query))
            ]
        )

    def _spelt_out(self, query: exp.Expr) -> psql.Composed:
        """Return a statement with its values quoted by the driver, where none can be bound."""
        # COPY and CREATE take no parameters, so psycopg writes them, as its client-side cursor
        # does. The marks between which they stand cannot be guessed, so no name can hold one.
        mark = f"discreet_{secrets.token_hex(16)}_"
        statement, values = sql.bound(
            query,
            dialect=self.name,
            placeholder=lambda place: exp.Var(this=f"{mark}{place}_"),
            spell=self._spelling,
        )
        pieces: list[psql.Composable] = []
        for odd, text in enumerate(re.split(f"{mark}([0-9]+)_", statement)):
            if odd % 2:
                pieces.append(psql.Literal(values[int(text) - 1]))
            else:
                pieces.append(psql.SQL(text))
        return psql.Composed(pieces)

    def _copied_out(self, query: exp.Query, target: BinaryIO) -> None:
        copy = psql.Composed(
            [psql.SQL("COPY ("), self._spelt_out(query), psql.SQL(") TO STDOUT (FORMAT csv)")]
        )

        def copied(connection: psycopg.Connection[Any]) -> None:
            target.seek(0)  # what an earlier connection brought is written over
            target.truncate()
            with ended_by(connection.cancel), connection.cursor().copy(copy) as stream:
                target.writelines(stream)
            target.flush()

        self._session.run(copied, needs=_tables(query))
        self.asked += 1

    def fetch(self, query: exp.Query | Relation) -> pa.Table:
        """Run a tree and return its rows."""
        import pyarrow as pa

        tree = bounded(query)
        schema = self.schema(tree)
        rows = pa.Table.from_batches(self._read(tree, schema, limit=self.driver_limit), schema)
        note_fetched(rows, kind_of(query))
        return rows

    def answer(self, query: exp.Query) -> pa.Table:
        """Run a tree and return its rows, sums of whole numbers as whole numbers."""
        import pyarrow as pa

        found = self.schema(query)
        # A sum of integers is of the type numeric, like any mean: its digits tell them apart.
        loose = [place for place, field in enumerate(found) if field.metadata == _LOOSE]
        as_text = found
        for place in loose:
            as_text = as_text.set(place, pa.field(found.names[place], pa.string()))
        rows = pa.Table.from_batches(self._read(query, as_text, limit=self.driver_limit), as_text)
        note_fetched(rows, kind_of(query))
        for place in loose:
            rows = rows.set_column(place, found.names[place], _as_number(rows.column(place)))
        return rows

    def batches(self, query: exp.Query | Relation) -> Iterator[pa.RecordBatch]:
        """Run a tree and yield its rows piece by piece."""
        tree = query.query if isinstance(query, Relation) else query
        return self._read(tree, self.schema(tree))

    def _read(
        self, tree: exp.Query, schema: pa.Schema, *, limit: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyarrow import csv

        # The rows wait in a file, so that a large result needs no memory.
        with local_room(), tempfile.TemporaryFile(prefix="discreet-") as file:
            self._copied_out(tree, file)
            size = file.tell()
            if size == 0:
                return
            if limit is not None and size > limit:  # what nobody counted ahead
                self.require_room("rows", self.count(Relation(self, tree, schema)), size)
            file.seek(0)
            places = [f"c{place}" for place in range(len(schema))]
            try:
                reader = csv.open_csv(
                    file,
                    read_options=csv.ReadOptions(column_names=places, block_size=1 << 24),
                    parse_options=csv.ParseOptions(
                        newlines_in_values=True, ignore_empty_lines=False
                    ),
                    convert_options=csv.ConvertOptions(
                        column_types=dict(zip(places, schema.types, strict=True)),
                        null_values=[""],
                        true_values=["t"],
                        false_values=["f"],
                        strings_can_be_null=True,
                        quoted_strings_can_be_null=False,
                    ),
                )
                for batch in reader:
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
            except pa.ArrowInvalid as error:
                raise _unreadable(error, schema) from None

    def materialize(self, relation: Relation, *, name: str | None = None) -> Relation:
        """Run the query once and keep the rows in a temporary table."""
        held = name or fresh_name()
        create = psql.SQL("CREATE TEMPORARY TABLE {} AS {}")
        statements = (
            create.format(psql.Identifier(held), self._spelt_out(relation.query)),
            psql.SQL("ANALYZE {}").format(psql.Identifier(held)),
        )

        def kept(connection: psycopg.Connection[Any]) -> None:
            for statement in statements:
                connection.execute(statement)
            self._session.hold(held)

        self._session.run(kept, needs=_tables(relation.query))
        columns = [sql.column(column) for column in relation.columns]
        query = sql.select(sql.named(held), columns)
        return Relation(self, query, relation.schema, relation.rows)

    def drop(self, relation: Relation) -> None:
        """Let go of what `materialize` or `load` kept."""
        table = relation.query.find(exp.Table)
        if table is not None and table.name.startswith("discreet_"):
            drop = psql.SQL("DROP TABLE IF EXISTS {}").format(psql.Identifier(table.name))
            if self._session.let_go(table.name):
                self._session.run(lambda connection: connection.execute(drop))

    def store(self, relation: Relation, name: str) -> None:
        """Write rows to a table of the database, all or nothing."""
        schema, _, plain = name.rpartition(".")
        place = (schema,) if schema else ()
        fresh = psql.Identifier(*place, fresh_name("table"))
        statements = [
            psql.SQL("CREATE TABLE {} AS {}").format(fresh, self._spelt_out(relation.query)),
            # After the rows are written, for they may come from the table that is replaced.
            psql.SQL("DROP TABLE IF EXISTS {}").format(psql.Identifier(*place, plain)),
            psql.SQL("ALTER TABLE {} RENAME TO {}").format(fresh, psql.Identifier(plain)),
        ]

        def stored(connection: psycopg.Connection[Any]) -> None:
            with connection.transaction():
                for statement in statements:
                    connection.execute(statement)

        # Not twice: the rows may come from the table that is replaced.
        self._session.ensure()
        self._session.run(stored, again=False, needs=_tables(relation.query))

    # -- PostgreSQL's own forms ------------------------------------------------------------------
    def largest(self, fields: Mapping[str, exp.Expr], order: exp.Expr, n: int) -> list[exp.Expr]:
        """Return one array per field, sorted alike; ties go to the larger fields."""
        keys = [
            exp.Ordered(this=key.copy(), desc=True, nulls_first=False)
            for key in (order, *fields.values())
        ]
        arrays = {
            name: exp.ArrayAgg(
                this=exp.Order(this=value.copy(), expressions=[key.copy() for key in keys])
            )
            for name, value in fields.items()
        }
        upto = exp.Slice(this=exp.Literal.number(1), expression=exp.Literal.number(n))
        return [
            sql.alias(
                exp.Bracket(this=exp.Paren(this=array), expressions=[upto.copy()], offset=1),
                f"l_{name}",
            )
            for name, array in arrays.items()
        ]

    def bytewise(self, value: exp.Expr) -> exp.Expr:
        """Return a text that is compared byte by byte, whatever language the server speaks."""
        return collated(value)

    def is_nan(self, value: exp.Expr) -> exp.Expr:
        """Return the condition that a number is none; here NaN equals itself."""
        return exp.EQ(this=value, expression=sql.double(sql.text("NaN")))

    def composed(self, value: exp.Expr) -> exp.Expr | None:
        """Return a text in Unicode's composed form, where the database holds Unicode."""
        if self._session.encoding != "UTF8":
            return None
        # ASCII is composed; to look whether it is costs a tenth of composing it.
        plain = exp.EQ(this=exp.ByteLength(this=value), expression=exp.Length(this=value.copy()))
        composed = sql.call("normalize", value.copy(), exp.Var(this="NFC"))
        return exp.Case().when(plain, value.copy()).else_(composed)

    def element(self, name: str, place: int, fields: Sequence[str]) -> exp.Expr:
        """Return one element of one of those arrays."""
        return exp.Bracket(
            this=sql.column(f"l_{name}"), expressions=[exp.Literal.number(place)], offset=1
        )

    def digest(self, text: exp.Expr) -> exp.Expr:
        """Return the SHA-256 of a text."""
        stored = sql.call("convert_to", text, sql.text("UTF8"))
        return sql.call("encode", sql.call("sha256", stored), sql.text("hex"))

    def from_hexadecimal(self, digits: exp.Expr) -> exp.Expr:
        """Return hexadecimal digits as a whole number."""
        return sql.bigint(_bits(digits, 60))

    def bits(self, value: exp.Expr) -> exp.Expr:
        """Return the bits of a double."""
        nothing = sql.double(sql.text("NaN"))
        is_nothing = exp.EQ(this=value.copy(), expression=nothing.copy())
        known = exp.Case(default=value).when(is_nothing, nothing)
        sent = sql.call("encode", sql.call("float8send", known), sql.text("hex"))
        return sql.bigint(_bits(sent, 64))

    def microseconds(self, value: exp.Expr) -> exp.Expr:
        """Return microseconds since 1970."""
        seconds = exp.Extract(this=exp.Var(this="epoch"), expression=value)
        return sql.bigint(exp.Mul(this=seconds, expression=sql.number(1_000_000)))

    def mark(self, table: str, owner: str) -> str | None:
        """Return who marked a table, in a table `discreet_marks` of the same schema."""
        schema, _, plain = table.rpartition(".")
        exact = [psql.Identifier(table), psql.Identifier(schema, plain)] if schema else []
        names = exact or [psql.Identifier(table)]

        def marked(connection: psycopg.Connection[Any]) -> str | None:
            with connection.transaction():
                for name in names:
                    found = connection.execute(
                        "SELECT n.nspname, c.relname FROM pg_class c "
                        "JOIN pg_namespace n ON n.oid = c.relnamespace "
                        "WHERE c.oid = to_regclass(%s)",
                        (name.as_string(connection),),
                    ).fetchone()
                    if found is not None:
                        home, relation = found
                        return _marked(connection, str(home), str(relation), owner)
            return None

        try:
            return self._session.run(marked)
        except EngineError as error:
            if error.code == "connection-lost":
                raise  # whether somebody else marked it is not known
            return None  # no right to write here, or a server that only reads

    def state(self, relation: Relation) -> str | None:
        """Return which versions of rows the tables hold, scanned if anybody wrote to the server."""
        return self._session.run(
            lambda connection: self._versions.now(connection, _permanent(relation.query))
        )

    def close(self) -> None:
        """Close the connection; everything temporary goes with it."""
        self._session.close()


def _no_such_column(table: str, error: EngineError) -> InputError:
    return InputError(
        f"the table {table!r} has not all of the columns that were named: {error.message}",
        code="unknown-column",
        hint="name columns of the table",
    )


def _marked(connection: psycopg.Connection[Any], schema: str, table: str, owner: str) -> str:
    marks = psql.Identifier(schema, "discreet_marks")
    known = connection.execute("SELECT to_regclass(%s)", (marks.as_string(connection),)).fetchone()
    if known == (None,):
        connection.execute(
            psql.SQL(
                "CREATE TABLE IF NOT EXISTS {} (relation TEXT PRIMARY KEY, ledger TEXT NOT NULL)"
            ).format(marks)
        )
    find = psql.SQL("SELECT ledger FROM {} WHERE relation = {}").format(marks, psql.Literal(table))
    if (held := connection.execute(find).fetchone()) is not None:
        return str(held[0])
    connection.execute(
        psql.SQL("INSERT INTO {} VALUES ({}, {}) ON CONFLICT DO NOTHING").format(
            marks, psql.Literal(table), psql.Literal(owner)
        )
    )
    held = connection.execute(find).fetchone()
    assert held is not None
    return str(held[0])


def _tables(query: exp.Expr) -> set[str]:
    """Return the names of the tables that a tree reads."""
    return {table.name for table in query.find_all(exp.Table)}


def _permanent(query: exp.Expr) -> list[psql.Identifier]:
    """Return the tables of the database that a tree reads; temporary ones are ours alone."""
    found = {
        (table.db, table.name)
        for table in query.find_all(exp.Table)
        if not table.name.startswith("discreet_")
    }
    return [psql.Identifier(*filter(None, pair)) for pair in sorted(found)]


def _placeholder(place: int) -> exp.Expr:
    return exp.Parameter(this=exp.Literal.number(place))


def _bits(digits: exp.Expr, size: int) -> exp.Expr:
    written = exp.Paren(this=exp.DPipe(this=sql.text("x"), expression=digits))
    return exp.Cast(this=written, to=exp.DataType.build(f"bit({size})", dialect="postgres"))


def _as_meant(field: pa.Field) -> exp.Expr:
    """Return a column of a table as a value of the type it is said to have.

    Texts are compared byte by byte; types of the server's own, such as enumerations or texts that
    ignore case, become texts, and numbers of any size the doubles they are taken for.
    """
    import pyarrow as pa

    value = sql.column(field.name)
    if field.metadata == _LOOSE:
        return sql.alias(sql.double(value), field.name)
    if pa.types.is_string(field.type):
        written = exp.Cast(this=value, to=exp.DataType.build("text"))  # itself, if it is one
        return sql.alias(collated(written), field.name)
    return value


def _is_loose(column: psycopg.Column) -> bool:
    """Whether a column holds numbers of any size, as sums and means of numbers do."""
    registered = psycopg.adapters.types.get(column.type_code)
    return registered is not None and registered.name == "numeric" and column.precision is None


def _as_number(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers written by the server: integers if none has a decimal point and all fit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.all(pc.match_substring_regex(texts, r"^-?\d{1,19}$")).as_py():
        with contextlib.suppress(pa.ArrowInvalid):
            return texts.cast(pa.int64())
    return texts.cast(pa.float64())


# -- types and rows on their way ------------------------------------------------------------------
def _arrow_type(column: psycopg.Column) -> pa.DataType:
    """Return the Arrow type for a column of a result; what has none comes as text."""
    import pyarrow as pa

    kinds = {
        "bool": pa.bool_(),
        "int2": pa.int16(),
        "int4": pa.int32(),
        "int8": pa.int64(),
        "oid": pa.int64(),
        "float4": pa.float32(),
        "float8": pa.float64(),
        "date": pa.date32(),
        "time": pa.time64("us"),
        "timestamp": pa.timestamp("us"),
        "timestamptz": pa.timestamp("us", "UTC"),
    }
    registered = psycopg.adapters.types.get(column.type_code)
    name = "" if registered is None else registered.name
    if name == "numeric":
        # Without a declared scale (a sum of integers, say) the best that fits everywhere.
        if column.precision is None or not 0 <= (column.scale or 0) <= column.precision <= 38:
            return pa.float64()
        return pa.decimal128(column.precision, column.scale or 0)
    return kinds.get(name, pa.string())


def _unreadable(error: Exception, schema: pa.Schema) -> EngineError:
    """Return the error of a value that Arrow's type has no room for, without the value."""
    found = re.search(r"column #(\d+)", str(error))
    field = schema.field(int(found.group(1))) if found else None
    named = "a column" if field is None else f"column {field.name!r}"
    kind = "its type" if field is None else str(field.type)
    return EngineError(
        f"{named} holds a value that does not fit {kind}, such as an infinite date",
        code="unreadable-value",
        hint="read a view of the table that leaves such values out, or casts them to text",
        column=None if field is None else field.name,
    )


def _declared(kind: pa.DataType) -> LiteralString:
    """Return the type a temporary table declares for an Arrow type."""
    import pyarrow as pa

    exact: dict[pa.DataType, LiteralString] = {
        pa.bool_(): "boolean",
        pa.int8(): "smallint",
        pa.uint8(): "smallint",
        pa.int16(): "smallint",
        pa.uint16(): "integer",
        pa.int32(): "integer",
        pa.uint32(): "bigint",
        pa.int64(): "bigint",
        pa.float32(): "real",
        pa.float64(): "double precision",
        pa.date32(): "date",
        pa.string(): 'text COLLATE "C"',  # in the order of bytes, as everywhere
    }
    if kind in exact:
        return exact[kind]
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    if pa.types.is_time(kind):
        return "time"
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    raise InputError(
        f"PostgreSQL cannot take a column of type {kind}",
        code="unsupported-type",
        hint="convert it to numbers, text or dates",
    )


def _copy_in(rows: pa.Table, stream: psycopg.Copy) -> None:
    import pyarrow as pa
    from pyarrow import csv

    options = csv.WriteOptions(include_header=False)
    for batch in rows.to_batches(max_chunksize=1 << 17):
        sink = pa.BufferOutputStream()
        csv.write_csv(batch, sink, options)
        stream.write(memoryview(sink.getvalue()))
