"""Frames of the libraries people use: what went in comes back in the same types.

Engines know fewer types than libraries do: a categorical column becomes text, an integer that may
be missing a number. `Library` remembers how the columns were typed, and `to_library` gives
each column that still holds the same kind of values its own type back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Library", "ordered_categories", "to_library"]


class Library(str):
    """The name of a library of frames, and how the columns of a frame of it were typed.

    >>> import pandas as pd, pyarrow as pa
    >>> people = pd.DataFrame({"age": pd.array([30, None], dtype="Int64")})
    >>> rows = pa.Table.from_pandas(people)
    >>> library = Library.of("pandas", people, rows)
    >>> library == "pandas", to_library(rows, library)["age"].dtype
    (True, Int64Dtype())
    """

    __slots__ = ("kinds", "of_release", "template")
    #: The first no rows of the frame. Any: of any library.
    template: Any
    #: What kind of values each column held: see `_kind`.
    kinds: Mapping[str, str]
    #: Whether frames leave: a category that no record has would tell of records taken out.
    of_release: bool

    @classmethod
    def of(cls, name: str, frame: Any, rows: pa.Table) -> Library:
        """Remember how the columns of a frame are typed, and what Arrow takes them for.

        Any: a frame of the library.
        """
        library = cls(name)
        library.template = frame.iloc[:0] if name == "pandas" else frame[:0]
        library.kinds = {field.name: _kind(field.type) for field in rows.schema}
        library.of_release = False
        return library

    @staticmethod
    def for_release(library: str) -> str:
        """Return the library of a release: its frames name no category that no record has."""
        if not isinstance(library, Library):
            return library
        leaving = Library(str(library))
        leaving.template, leaving.kinds, leaving.of_release = library.template, library.kinds, True
        return leaving


def ordered_categories(library: str) -> dict[str, tuple[str, ...]]:
    """Return the columns of a frame whose categories have an order, and that order.

    >>> import pandas as pd, pyarrow as pa
    >>> sizes = pd.DataFrame({"size": pd.Categorical(["big"], ["small", "big"], ordered=True)})
    >>> ordered_categories(Library.of("pandas", sizes, pa.Table.from_pandas(sizes)))
    {'size': ('small', 'big')}
    """
    from discreet.data.codes import code_text

    if not isinstance(library, Library) or library == "pyarrow":
        return {}
    found = {}
    for name in library.template.columns:
        kind = library.template[name].dtype
        # Of pandas an ordered categorical has an order, of polars an Enum.
        categories = getattr(kind, "categories", None)
        has_order = getattr(kind, "ordered", type(kind).__name__ == "Enum")
        if categories is not None and has_order:
            found[str(name)] = tuple(code_text(value) for value in categories)
    return found


def _kind(kind: pa.DataType) -> str:
    """Return which values a type holds, whatever their width."""
    import pyarrow as pa

    is_ = pa.types
    if is_.is_dictionary(kind):
        return _kind(kind.value_type)
    checks = {
        "integer": is_.is_integer,
        "real": is_.is_floating,
        "decimal": is_.is_decimal,
        "boolean": is_.is_boolean,
        "instant": is_.is_timestamp,
        "date": is_.is_date,
        "time": is_.is_time,
        "nothing": is_.is_null,
    }
    texts = (is_.is_string, is_.is_large_string, is_.is_string_view)
    if any(check(kind) for check in texts):
        return "text"
    return next((word for word, check in checks.items() if check(kind)), str(kind))


def to_library(rows: pa.Table, library: str) -> Any:
    """Return an Arrow table as a frame of a library, its columns typed as they went in.

    Any: three libraries, none of them needed.
    """
    convert = {"pyarrow": _arrow, "polars": _polars}.get(library, _pandas)
    return convert(rows, library)


def _restored(rows: pa.Table, library: str) -> list[str]:
    """Return the columns that hold the kind of values they held when they went in."""
    if not isinstance(library, Library):
        return []
    return [f.name for f in rows.schema if library.kinds.get(f.name) == _kind(f.type)]


def _arrow(rows: pa.Table, library: str) -> pa.Table:
    import pyarrow as pa

    for name in _restored(rows, library):
        assert isinstance(library, Library)
        field = library.template.schema.field(name)
        if field.type != rows.schema.field(name).type:
            with contextlib.suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
                place = rows.column_names.index(name)
                rows = rows.set_column(place, name, rows.column(place).cast(field.type))
    return rows


def _polars(rows: pa.Table, library: str) -> Any:
    # Any: polars is an extra.
    import polars

    frame: Any = polars.from_arrow(rows)
    for name in _restored(rows, library):
        assert isinstance(library, Library)
        kind = library.template.schema[name]
        if kind != frame.schema[name]:
            with contextlib.suppress(polars.exceptions.PolarsError):
                column = frame[name]
                if isinstance(kind, polars.Enum) and library.of_release:
                    there = set(column.drop_nulls().to_list())
                    kind = polars.Enum([word for word in kind.categories if word in there])
                if isinstance(kind, polars.Datetime) and kind.time_zone is not None:
                    column = column.dt.convert_time_zone(kind.time_zone)
                frame = frame.with_columns(column.cast(kind))
    return frame


def _pandas(rows: pa.Table, library: str) -> Any:
    # Any: pandas has no annotations of its own.
    frame = rows.to_pandas()
    for name in _restored(rows, library):
        assert isinstance(library, Library)
        kind = library.template[name].dtype
        if kind != frame[name].dtype:
            typed = _pandas_column(rows.column(name), frame[name], kind, library)
            if typed is not None:
                frame[name] = typed
    return frame


def _pandas_column(column: pa.ChunkedArray, series: Any, kind: Any, library: Library) -> Any:
    """Return a column as the given type of pandas, or None where that would lose a value.

    Any: types and columns of pandas.
    """
    import pandas as pd
    import pyarrow as pa

    with contextlib.suppress(TypeError, ValueError, NotImplementedError, pa.ArrowException):
        if isinstance(kind, pd.CategoricalDtype):
            known = series.isna() | series.isin(kind.categories)
            if library.of_release:
                there = kind.categories[kind.categories.isin(series)]
                kind = pd.CategoricalDtype(there, ordered=kind.ordered)
            return series.astype(kind) if known.all() else None
        if hasattr(kind, "__from_arrow__"):
            if isinstance(kind, pd.DatetimeTZDtype):
                return series.astype(kind)
            if isinstance(kind, pd.ArrowDtype):
                column = column.cast(kind.pyarrow_dtype)
            return pd.Series(kind.__from_arrow__(column), index=series.index, name=series.name)
        if kind.kind == "O":  # texts, as pandas held them before it had a type for them
            return series.astype(object).where(series.notna(), None)
        if kind.kind == "f":  # a narrower number would be rounded
            return None
        typed = series.astype(kind)
        return typed if (typed == series).all() else None
    return None
