"""Files of statistical packages: SPSS, Stata and SAS, with the labels of their codes.

A column of codes with labels is read as its codes, or with `labels=True` as its labels. Either way
its values are categories, and `Reading.labels` keeps what each code is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.codes import code_text
from discreet.data.reading import Guess, Reading, needs_extra
from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_statistical"]

_READERS = {"spss": "read_sav", "stata": "read_dta", "sas": "read_sas7bdat"}
#: Columns that are named.
_SHOWN = 5


def read_statistical(
    file: Path, kind: str, *, labels: bool | None = None, metadata: str | Path | None = None
) -> tuple[pa.Table, Reading]:
    """Return the records of a file, and which of its columns are codes with labels.

    `metadata` is the catalogue (`.sas7bcat`) with the labels of a SAS file, if not beside it.
    """
    try:
        import pyreadstat
    except ModuleNotFoundError:
        raise needs_extra(file.suffix) from None
    import pyarrow as pa

    reader = _reader(file, kind)
    frame, about = _read(getattr(pyreadstat, reader), file, kind, output_format="dict")
    named: dict[str, Mapping[Any, str]] = dict(about.variable_value_labels)
    catalogue = _catalogue(file, metadata) if reader == "read_sas7bdat" else None
    if catalogue is not None:
        _, listed = _read(pyreadstat.read_sas7bcat, catalogue, kind, output_format="dict")
        formats: Mapping[str, str] = about.variable_to_label
        found = {name: listed.value_labels.get(which) for name, which in formats.items()}
        named |= {name: codes for name, codes in found.items() if codes}
    columns, kept, orders, ordinal = {}, {}, {}, []
    for name, values in frame.items():
        column = _column(values)
        codes = _codes(named.get(name, {}))
        if not _are_codes(column, codes):
            columns[name] = column
            continue
        kept[name] = codes
        columns[name] = _labelled(column, codes) if labels else column
        orders[name] = tuple(dict.fromkeys(codes.values() if labels else codes))
        if about.variable_measure.get(name) == "ordinal":
            ordinal.append(name)
    guesses = [
        Guess("values", _told(kept, is_label=bool(labels)), "no-labels" if labels else "labels")
    ]
    if catalogue is not None:
        guesses.append(Guess("labels", f"of {catalogue.name}", "metadata"))
    return pa.table(columns), Reading(
        kind, tuple(guesses if kept else ()), labels=kept, orders=orders, ordinal=tuple(ordinal)
    )


# Any, below: pyreadstat's own containers and codes.
def _read(reader: Any, file: Path, kind: str, **settings: str) -> Any:
    try:
        return reader(str(file), **settings)
    except Exception as error:  # pyreadstat has several error classes and raises others too
        raise InputError(
            f"the file cannot be read as {kind.upper()}",
            code="bad-file",
            hint=str(error).splitlines()[0][:200],
            file=file,
        ) from None


def _reader(file: Path, kind: str) -> str:
    with file.open("rb") as stream:
        head = stream.read(13)
    if head == b"HEADER RECORD":
        return "read_xport"
    return "read_por" if file.suffix.lower() == ".por" else _READERS[kind]


def _catalogue(file: Path, given: str | Path | None) -> Path | None:
    """Return the file with the labels of a SAS file: the one given, or one of the same name."""
    beside = Path(given) if given is not None else file.with_suffix(".sas7bcat")
    if given is not None and not beside.exists():
        raise InputError("there is no such catalogue of labels", code="no-file", file=beside)
    return beside if beside.exists() else None


def _codes(labels: Mapping[Any, str]) -> dict[str, str]:
    """Return labels by their codes as texts, numbers in their order."""

    def place(code: Any) -> tuple[bool, Any]:
        return isinstance(code, str), code

    return {code_text(code): str(labels[code]) for code in sorted(labels, key=place)}


def _are_codes(column: pa.Array, codes: Mapping[str, str]) -> bool:
    """Whether most values of a column have a label: "99 refused" does not make ages codes."""
    values = [code_text(value) for value in column.unique().to_pylist() if value is not None]
    return sum(1 for value in values if value in codes) > len(values) / 2


def _labelled(column: pa.Array, labels: Mapping[str, str]) -> pa.Array:
    """Return codes as their labels; codes without one stay."""
    import pyarrow as pa

    coded = column.dictionary_encode()
    known = [code_text(value) for value in coded.dictionary.to_pylist()]
    texts = [labels.get(code, code) for code in known]
    return pa.array(texts, pa.string()).take(coded.indices)


def _told(kept: Mapping[str, Any], *, is_label: bool) -> str:
    """Return which columns are codes."""
    more = " …" if len(kept) > _SHOWN else ""
    return f"{'labels' if is_label else 'codes'} of {', '.join(list(kept)[:_SHOWN])}{more}"


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
