"""A dataset: records in an engine, and what each column is.

Nothing is pulled into Python that the engine can aggregate. A dataset never changes: every
operation returns another one. Frames come back in the type that went in.
"""

from __future__ import annotations

import dataclasses
import functools
import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from sqlglot import exp

from discreet.data.canonical import canonical, canonical_rows
from discreet.data.declared import Declared, declared
from discreet.data.engines.base import ROW, Engine, Relation, connect
from discreet.data.engines.driver import byte_size
from discreet.data.frames import to_library
from discreet.data.hierarchy import Hierarchy
from discreet.data.origin import Origin, origin_of
from discreet.data.reading import Reading
from discreet.data.row_schema import (
    fitted_schema,
    inferred_schema,
    require_names,
    undecided_schema,
    with_categories,
)
from discreet.data.schema import Role, Schema, Type
from discreet.data.units import require_one_spelling
from discreet.data.weights import require_weights
from discreet.errors import InputError
from discreet.randomness import Randomness
from discreet.registry import is_address
from discreet.report import text_table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Dataset", "as_dataset", "read", "to_library"]


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Records in an engine, with a schema.

    Examples
    --------
    >>> import pandas as pd
    >>> people = read(
    ...     pd.DataFrame({"sector": ["IT", "IT", "Fin"], "salary": [10.0, 20.0, 30.0]}),
    ...     roles={"sector": "quasi", "salary": "confidential"},
    ...     name="people",
    ... )
    >>> people
    Dataset(people: 3 rows, sector, salary)
    >>> people.cells(["sector"], measure="salary").select(["sector", "count", "sum"]).to_pydict()
    {'sector': ['Total', 'Fin', 'IT'], 'count': [3, 1, 2], 'sum': [60.0, 30.0, 30.0]}
    >>> people.frame
      sector  salary
    0     IT    10.0
    1     IT    20.0
    2    Fin    30.0
    """

    relation: Relation
    schema: Schema
    #: The relation's name in SQL.
    name: str = "data"
    #: The library that `frame` gives frames of: "pandas", "polars" or "pyarrow".
    library: str = "pandas"
    #: The format of the file the records came from; none for frames and tables.
    format: str | None = None
    #: The file or table the records were read from; none for frames.
    origin: Origin | None = None
    #: How the file was read, with every guess; none for frames and tables.
    reading: Reading | None = None

    @property
    def engine(self) -> Engine:
        """Where the records live."""
        return self.relation.engine

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(name for name in self.relation.columns if name != ROW)

    @property
    def unit(self) -> str | None:
        """The column that says whom a record belongs to."""
        return self.schema.unit

    @property
    def weight(self) -> str | None:
        """The column with sampling weights."""
        return self.schema.weight

    @functools.cached_property
    def count(self) -> int:
        """Number of records."""
        return self.engine.count(self.relation)

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return True

    def arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the records as an Arrow table, in their own order."""
        names = list(self.columns if columns is None else columns)
        if not names:
            return self.engine.fetch(self.relation).select([])
        if ROW in self.relation.columns and ROW not in names:
            rows = self.engine.fetch(self.engine.project(self.relation, [*names, ROW]))
            return rows.sort_by(ROW).select(names)
        return self.engine.fetch(self.engine.project(self.relation, names))

    @property
    def frame(self) -> Any:
        """The records as a frame of the library that went in; pandas for files.

        Any: three libraries, none of them needed.
        """
        return to_library(self.arrow(), self.library)

    def frequencies(self, columns: Sequence[str], *, weight: str | None = None) -> pa.Table:
        """Return each combination of values once, with its `count`."""
        return self.engine.frequencies(self.relation, list(columns), weight=weight)

    def cells(
        self,
        by: Sequence[str] | Mapping[str, Sequence[Hierarchy]],
        *,
        measure: str | None = None,
        unit: str | None = None,
        weight: str | None = None,
        **options: Any,
    ) -> pa.Table:
        """Return the cells of a cross of attributes: see `engines.cells.cells_of`.

        Attributes have the hierarchies of the schema unless others are given; unit and weight are
        the schema's unless given. Any: the remaining options of `cells_of`.
        """
        from discreet.data.engines.cells import cells_of

        given = (
            {name: self.schema.hierarchies(name) for name in by}
            if not isinstance(by, Mapping)
            else {name: tuple(several) for name, several in by.items()}
        )
        return cells_of(
            self.relation,
            given,
            measure=measure,
            unit=self.schema.unit if unit is None else unit,
            weight=self.schema.weight if weight is None else weight,
            **options,
        )

    def aggregate(self, query: exp.Query) -> pa.Table:
        """Run a parsed query, in which this dataset is the table of its name."""
        return self.engine.aggregate(query, {self.name: self.relation})

    # -- other datasets --------------------------------------------------------------------------
    def replace(
        self,
        *,
        relation: Relation | None = None,
        schema: Schema | None = None,
        name: str | None = None,
        library: str | None = None,
        **changes: Any,
    ) -> Dataset:
        """Return the dataset with other rows, another name, or changes to its schema.

        Any: `roles`, `types`, `hierarchies`, `unit` and `weight`, as `Schema.replace` takes them.
        """
        rows = relation or self.relation
        columns = schema or fitted_schema(self.schema, rows)
        return Dataset(
            rows,
            columns.replace(**changes) if changes else columns,
            self.name if name is None else name,
            library or self.library,
            self.format,
            self.origin,
            self.reading,
        )

    def select(self, columns: Sequence[str]) -> Dataset:
        """Return some of the columns."""
        kept = [*columns, *([ROW] if ROW in self.relation.columns else [])]
        return self.replace(relation=self.engine.project(self.relation, kept))

    def where(self, predicate: exp.Expr) -> Dataset:
        """Return the records for which a predicate, given as a sqlglot tree, is true.

        >>> from sqlglot import condition
        >>> import pandas as pd
        >>> len(read(pd.DataFrame({"age": [20, 40, 60]})).where(condition("age > 30")))
        2
        """
        from discreet.data.engines.sql import resolve_columns

        known = resolve_columns(predicate, self.relation.columns)
        return self.replace(relation=self.engine.filter(self.relation, known))

    def recode(self, maps: Mapping[str, Mapping[Any, Any] | pa.Table]) -> Dataset:
        """Return the dataset with values replaced; what a map does not name stays as it is.

        Any: values are of the column's type.
        """
        import pyarrow as pa

        from discreet.data.engines.changes import recode

        tables = {
            name: pa.table({"from": list(given), "to": list(given.values())})
            if isinstance(given, Mapping)
            else given
            for name, given in maps.items()
        }
        return self.replace(relation=recode(self.relation, tables))

    def numbered(self) -> Dataset:
        """Return the dataset with its rows held still and numbered, ready for `with_columns`."""
        return self.replace(relation=self.engine.number(self.relation))

    def with_columns(self, columns: Mapping[str, Any] | pa.Table) -> Dataset:
        """Return the dataset with columns replaced or added, in the order of `arrow()`.

        Any: arrays or lists, one value per record; or a table with a column `__row`.
        """
        import numpy as np
        import pyarrow as pa

        from discreet.data.engines.changes import attach

        rows = self.numbered()
        if isinstance(columns, Mapping):
            table = pa.table({name: pa.array(values) for name, values in columns.items()})
            require_names(table.column_names)
            if table.num_rows != len(rows):
                raise InputError(
                    f"{table.num_rows} values were given for {len(rows)} records",
                    code="wrong-length",
                )
            table = table.append_column(ROW, pa.array(np.arange(table.num_rows)))
        else:
            table = columns
        return rows.replace(relation=attach(rows.relation, canonical_rows(table)))

    def sample(
        self, size: int, *, rng: Randomness | None = None, strata: Sequence[str] = ()
    ) -> Dataset:
        """Return a random sample of the records without replacement."""
        from discreet.data.engines.changes import sample

        rng = rng or Randomness.secure()
        return self.replace(relation=sample(self.relation, size=size, rng=rng, strata=strata))

    def canonical(self) -> Dataset:
        """Return the dataset with one form per value: see `discreet.data.canonical`."""
        return self.replace(relation=canonical(self.relation))

    def materialize(self) -> Dataset:
        """Return the dataset with its rows computed once and kept in the engine."""
        return self.replace(relation=self.engine.materialize(self.relation))

    def write(self, path: str | Path, *, format: str | None = None) -> Path:
        """Write the records to a file (csv, parquet, arrow) that appears whole or not at all."""
        rows = self.engine.project(
            self.relation,
            [*self.columns, *([ROW] if ROW in self.relation.columns else [])],
        )
        self.engine.write(rows, path, format=format)
        return Path(path)

    # -- showing ---------------------------------------------------------------------------------
    def __repr__(self) -> str:
        shown = ", ".join(self.columns[:8]) + (", …" if len(self.columns) > 8 else "")
        return f"Dataset({self.name}: {self.count:,} rows, {shown})"

    def describe_columns(self) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
        """Return the schema as rows for people: no data."""
        header = ("column", "type", "role", "hierarchies", "in the engine")
        body = [
            (
                column.name,
                column.type.value,
                column.role.value,
                ", ".join(h.name or repr(h) for h in column.hierarchies) or None,
                str(self.relation.schema.field(column.name).type),
            )
            for column in self.schema.columns
        ]
        return header, body

    def __str__(self) -> str:
        return f"{self!r}\n{text_table(*self.describe_columns())}"

    def _repr_html_(self) -> str:
        header, body = self.describe_columns()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
        lines = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape('' if v is None else str(v))}</td>" for v in row)
            + "</tr>"
            for row in body
        )
        caption = html.escape(f"{self.name}: {self.count:,} rows")
        return (
            f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{lines}</tbody></table>"
        )


def read(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    roles: Mapping[str, Role | str] | None = None,
    types: Mapping[str, Type | str] | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    unit: str | None = None,
    weight: str | None = None,
    rest: Role | str | None = None,
    vouch: Sequence[str] = (),
    domains: Mapping[str, Any] | None = None,
    bounds: Mapping[str, Sequence[float]] | None = None,
    name: str | None = None,
    engine: Engine | str | None = None,
    driver_limit: int | str | None = None,
    format: str | None = None,
    **options: Any,
) -> Dataset:
    r"""Return records as a dataset, wherever they are.

    Parameters
    ----------
    source
        A path (CSV, Parquet, Arrow, Feather, Excel, OpenDocument, SPSS, Stata, SAS, fixed width;
        compressed or not), a folder or a pattern such as ``"people-*.csv"`` (files with the same
        columns, read as one), a frame of pandas (without its index), polars or pyarrow, `"postgresql://…#schema.table"`, `"spark://…#table"`, a Spark
        frame, or a dataset.
        Any: every library has its own frame.
    columns
        The only columns to be read; all if left out. A right to read these suffices, and only these
        are described, counted and fetched.
    roles, types, hierarchies, unit, weight
        What the curator knows of the columns. Without any roles they are guessed, from names and
        aggregates of the first records; unit and weight are never guessed. A guess serves reports;
        nothing is released before the role of every column that leaves was said. The unit is the
        person, household or firm to be protected: it is an identifier, and promises count units,
        not records. A hierarchy is a
        `Hierarchy`, a file (`.hrc`, child,parent pairs, ARX lines), or what a policy file writes:
        `{"widths": [5, 10]}`; or a list of these. Any: one of them.
    rest
        The role of every column that `roles` leaves out; "identifier" keeps them all in the house.
        A column whose name says that it identifies somebody stays an identifier.
    vouch
        Columns that may leave although their values look as if they named people.
    domains, bounds
        Which values everybody may know a column can have. `domains` takes a list of them,
        `{"cuts": [0, 18, 65]}` or `{"bounds": [0, 500_000]}`; `bounds` takes the two ends, such as
        `(0, 500_000)`, which in `domains` would be two values. Any: one of them.
    name
        The name of the relation in SQL; the stem of the file by default.
    engine
        An engine or its URL; DuckDB inside the process by default.
    driver_limit
        How much one question may bring from the engine into Python, such as "2GB" (4 GiB if left
        out): more records, or combinations of values, are refused before they are fetched. Files
        and frames that have a limit of their own have an engine of their own.
    format
        csv, parquet, arrow, excel, ods, spss, stata, sas or fixed-width, where the suffix does not
        say.
    options
        How a file is written, where it is not found right. CSV: `delimiter`, `encoding`, `decimal`,
        `thousands`, `quote`, `header`, `na`, `skip` and `footer` (lines above the header and below
        the last record), `dates` ("day" or "month" first). Workbooks: `sheet`, `header`, `skip`,
        `footer`, `dates`. SPSS, Stata, SAS: `labels` (read labels instead of codes). Fixed width:
        `metadata` (the `.rda` file), `encoding`. What was found is in `Dataset.reading`. Any: texts,
        numbers and booleans.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("name;age;salary\nAna;30;1000,5\nBo;41;NA\n")
    >>> people = read(path, roles={"name": "identifier", "age": "quasi"})
    >>> people
    Dataset(people: 2 rows, name, age, salary)
    >>> people.arrow(["salary"]).to_pydict()
    {'salary': [1000.5, None]}
    """
    from discreet.data.sources import open_source, source_format

    wanted = None if columns is None else _wanted(columns)
    limit = None if driver_limit is None else byte_size(driver_limit)
    if limit is not None:
        engine = _engine_of_its_own(source, engine)
    trees = declared(hierarchies)
    types, texts = _read_as(trees, types or {})
    if isinstance(source, Dataset):
        rows, library, found = source.relation, source.library, source.name
        schema, file_kind, origin = source.schema, source.format, source.origin
        reading = source.reading
        if wanted is not None:
            rows = source.select(wanted).relation
            schema = fitted_schema(schema, rows)
    else:
        rows, library, found, reading = open_source(source, engine, format, options, texts, wanted)
        if wanted is not None and rows.columns != tuple(wanted):
            rows = rows.engine.project(rows, wanted)
        require_names(rows.columns)
        file_kind, origin = source_format(source, format), origin_of(source)
        schema = undecided_schema(rows) if roles or rest is not None else inferred_schema(rows)
        schema = with_categories(schema, reading, library)
    if limit is not None:
        rows.engine.driver_limit = limit
    schema = schema.replace(
        roles=roles,
        types=types,
        unit=unit,
        weight=weight,
        rest=rest,
        vouch=vouch,
        domains=domains,
        bounds=bounds,
    )
    known = found if name is None else _file_name(name)
    dataset = Dataset(rows, schema, known, library, file_kind, origin, reading)
    if weight is not None:
        require_weights(rows, weight)
    if unit is not None:
        require_one_spelling(rows, unit)
    if not trees:
        return dataset
    opened = {column: _opened(several, column, dataset) for column, several in trees.items()}
    return dataset.replace(schema=schema.replace(hierarchies=opened))


def _engine_of_its_own(source: Any, engine: Engine | str | None) -> Engine | str | None:
    """Return an engine for records with a limit of their own. Any: what `read` takes."""
    if isinstance(source, Dataset | Relation):
        raise InputError(
            "these records have been read, and their engine has a limit",
            code="parameter-range",
            hint="give driver_limit where they are read first",
            parameter="driver_limit",
        )
    is_table = isinstance(source, str) and is_address(source)
    return connect("duckdb://") if engine is None and not is_table else engine


def _wanted(columns: Sequence[str]) -> list[str]:
    """Return the columns to be read, each once."""
    if isinstance(columns, str):
        raise InputError(
            f"columns is a list of names, found the text {columns!r}",
            code="bad-columns",
            hint=f"write columns=[{columns!r}]",
            parameter="columns",
        )
    names = list(dict.fromkeys(columns))
    if not names:
        raise InputError(
            "columns names none", code="bad-columns", hint="leave it out to read all of them"
        )
    return names


def _file_name(name: str) -> str:
    """Return a name of a relation; released files are called by it, so that it leads nowhere else."""
    if not name or name in (".", "..") or any(c in "/\\" or not c.isprintable() for c in name):
        raise InputError(
            f"{name!r} cannot be the name of a relation: released files are called by it",
            code="bad-name",
            hint="write name='people', without slashes and control characters",
            parameter="name",
        )
    return name


def _read_as(
    trees: Mapping[str, Declared], types: Mapping[str, Type | str]
) -> tuple[dict[str, Type | str], list[str]]:
    """Return the types that hierarchies imply, with those given, and the columns to read as text.

    Codes of a hierarchy are texts, so a column that has one is read as text, unless the hierarchy
    cuts numbers into intervals.
    """
    made = [column for column, several in trees.items() if _is_made(several)]
    coded: dict[str, Type | str] = {
        column: Type.NOMINAL
        for column, several in trees.items()
        if column not in made and _of_codes(several)
    }
    known = coded | dict(types)
    named = [column for column, kind in known.items() if kind in (Type.NOMINAL, Type.ORDINAL)]
    return known, [*made, *named]


def _is_made(several: Declared) -> TypeGuard[tuple[Hierarchy, ...]]:
    return all(isinstance(one, Hierarchy) for one in several)


def _of_codes(several: Declared) -> bool:
    return all(isinstance(one, Hierarchy) or one.is_of_codes for one in several)


def _opened(several: Declared, column: str, dataset: Dataset) -> tuple[Hierarchy, ...]:
    """Return the hierarchies of a column, counting its values where a declaration needs them."""

    def frequencies(name: str) -> dict[Any, int]:
        found = dataset.frequencies([name])
        return dict(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))

    return tuple(
        one if isinstance(one, Hierarchy) else one.open(column, frequencies) for one in several
    )


def as_dataset(data: Any) -> Dataset:
    """Return a dataset, the dataset of a release, or a frame read as a dataset.

    Any: every library has its own frame.
    """
    if isinstance(data, Dataset):
        return data
    inner = getattr(data, "dataset", None)
    return inner if isinstance(inner, Dataset) else read(data)
