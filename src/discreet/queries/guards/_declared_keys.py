"""Values of keys that a curator declares, as values of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["declared_keys"]


def declared_keys(
    keys: Mapping[str, Sequence[Any]], schema: pa.Schema
) -> dict[str, tuple[Any, ...]]:
    """Return declared keys as values of their columns; each must be one, and stand there once.

    A group that is declared twice would be answered twice, with noise of its own each time, at the cost
    of one. Any: numbers, texts, truths, dates or None.

    Examples
    --------
    >>> import pyarrow as pa
    >>> declared_keys({"born": ("2001-02-03",)}, pa.schema({"born": pa.date32()}))
    {'born': (datetime.date(2001, 2, 3),)}
    """
    found = {}
    for name, values in keys.items():
        kind = schema.field(name).type
        read = tuple(_read(name, value, kind) for value in values)
        for place, value in enumerate(read):
            if value in read[:place]:
                raise InputError(
                    f"keys of {name!r}: {values[place]!r} is declared twice",
                    code="repeated-key",
                    column=name,
                    hint="name each value once",
                )
        found[name] = read
    return found


def _read(name: str, value: Any, kind: pa.DataType) -> Any:
    """Return a declared value as the column holds it."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if value is None:
        return None
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    fits = (
        isinstance(value, bool) == pa.types.is_boolean(kind)
        and isinstance(value, str) >= is_text
        and not (isinstance(value, str) and is_number)
    )
    try:
        if fits:
            return pa.scalar(value).cast(kind).as_py()
    except (pa.ArrowException, OverflowError):
        pass
    raise InputError(
        f"keys of {name!r}: {value!r} is no value of a column of type {kind}",
        code="key-type",
        column=name,
        hint="declare values as the column holds them: numbers without quotes, texts with them, "
        "dates as 'YYYY-MM-DD'",
    )
