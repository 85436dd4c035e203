"""Files of statistical packages: SPSS, Stata and SAS, with the labels of their codes.

A column of codes with labels is read as its codes, or with `labels=True` as its labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.reading import Guess, Reading, needs_extra
from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_statistical"]

_READERS = {"spss": "read_sav", "stata": "read_dta", "sas": "read_sas7bdat"}


def read_statistical(
    file: Path, kind: str, *, labels: bool | None = None
) -> tuple[pa.Table, Reading]:
    """Return the records of a file, and which of its columns are codes with labels."""
    try:
        import pyreadstat
    except ModuleNotFoundError:
        raise needs_extra(file.suffix) from None
    import pyarrow as pa

    reader = "read_xport" if _is_transport(file) else _READERS[kind]
    try:
        frame, about = getattr(pyreadstat, reader)(str(file), output_format="dict")
    except Exception as error:  # pyreadstat has several error classes and raises others too
        raise InputError(
            f"the file cannot be read as {kind.upper()}",
            code="bad-file",
            hint=str(error).splitlines()[0][:200],
            file=file,
        ) from None
    named: Mapping[str, Mapping[Any, str]] = about.variable_value_labels
    columns = {}
    for name, values in frame.items():
        column = _column(values)
        columns[name] = _labelled(column, named[name]) if labels and name in named else column
    coded = [name for name in frame if name in named]
    guesses: tuple[Guess, ...] = ()
    if coded:
        shown = ", ".join(coded[:5]) + (" …" if len(coded) > 5 else "")
        found = f"{'labels' if labels else 'codes'} of {shown}"
        guesses = (Guess("values", found, "no-labels" if labels else "labels"),)
    return pa.table(columns), Reading(kind, guesses)


def _is_transport(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(13) == b"HEADER RECORD"


def _labelled(column: pa.Array, labels: Mapping[Any, str]) -> pa.Array:
    """Return codes as their labels; codes without one stay. Any: codes of the file's own types."""
    import pyarrow as pa

    from discreet.data.codes import code_text

    texts = {code_text(code): label for code, label in labels.items()}
    found = [None if value is None else code_text(value) for value in column.to_pylist()]
    return pa.array([None if v is None else texts.get(v, v) for v in found], pa.string())


def _column(values: Any) -> Any:
    # Any: numpy arrays of whatever pyreadstat found; NaN and "" are its missing values.
    import pyarrow as pa

    array = pa.array(values, from_pandas=True)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        import pyarrow.compute as pc

        return pc.if_else(pc.equal(array, ""), None, array)
    if pa.types.is_floating(array.type):
        import pyarrow.compute as pc

        whole = pc.all(pc.and_(pc.equal(pc.floor(array), array), pc.less(pc.abs(array), 2.0**53)))
        if whole.as_py() and len(array) > array.null_count:
            return array.cast(pa.int64())
    return array
