"""Ready-made cells as users have them: a frame of any library, checked column by column.

A million cells are ordinary, so codes are dictionary-encoded by Arrow and numbers converted in
one go; nothing here loops over rows.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError, nearest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Cells", "Status"]

Floats = npt.NDArray[np.float64]
_TRUE = ["1", "1.0", "true", "t", "yes", "y", "u", "primary"]
_FALSE = ["0", "0.0", "false", "f", "no", "n", "s", "safe", ""]


class Status(enum.IntEnum):
    """What is known of a cell's protection, in the order in which it may get worse.

    Examples
    --------
    >>> Status(2).name
    'PRIMARY'
    """

    SAFE = 0
    SECONDARY = 1
    PRIMARY = 2
    CHANGED = 3

    @property
    def word(self) -> str:
        """The status as releases print it."""
        return self.name.lower()


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """The columns of a frame of cells."""

    columns: dict[str, pa.ChunkedArray]

    @classmethod
    def of(cls, frame: Any) -> Cells:
        """Take a frame of any library that narwhals reads (hence Any)."""
        import narwhals.stable.v1 as nw

        data = nw.from_native(frame, eager_only=True)
        if len(data) == 0:
            raise InputError("there are no cells", code="empty-table", hint="give one row per cell")
        names = list(data.columns)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(
                f"two columns are called {twice[0]!r}", code="duplicate-columns", column=twice[0]
            )
        arrow = data.to_arrow()
        return cls({name: arrow.column(place) for place, name in enumerate(names)})

    def require(self, wanted: Sequence[str], by: Sequence[str]) -> None:
        """Say which column is missing, or that a dimension is named twice or not at all."""
        if not by:
            raise InputError(
                "a table needs a dimension", code="no-dimension", hint="write by=['region']"
            )
        for name in wanted:
            if name not in self.columns:
                guess = nearest(name, self.columns)
                raise InputError(
                    f"the cells have no column {name!r}",
                    code="unknown-column",
                    hint=f"write {guess!r}"
                    if guess
                    else f"choose one of {', '.join(self.columns)}",
                    column=name,
                )
        twice = [name for name in by if list(by).count(name) > 1]
        if twice:
            raise InputError(
                f"dimension {twice[0]!r} is named twice", code="duplicate-columns", column=twice[0]
            )

    def codes(self, name: str) -> tuple[list[str], npt.NDArray[np.int64]]:
        """Return the distinct codes of a column, in order of appearance, and each row's place."""
        import pyarrow as pa

        column = self.columns[name].combine_chunks()
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise InputError(
                f"dimension {name!r} has no code in row {row + 1}",
                code="missing-code",
                hint="write the code of the total where a total is meant",
                column=name,
                line=row + 1,
            )
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        encoded = column.cast(pa.string()).dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)

    def numbers(self, name: str, *, least: float = -np.inf) -> Floats:
        """Return a column as finite numbers, or say in which row it is none."""
        import pyarrow as pa

        column = self.columns[name]
        if pa.types.is_dictionary(column.type):
            column = column.combine_chunks().dictionary_decode()
        if not (_is_number(column.type) or pa.types.is_null(column.type)):
            raise InputError(
                f"column {name!r} holds {column.type} where numbers are needed",
                code="not-a-number",
                hint="convert it to numbers, with a point as decimal mark",
                column=name,
            )
        numbers: Floats = column.cast(pa.float64()).to_numpy().astype(np.float64, copy=True)
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if wrong.size:
            raise InputError(
                f"column {name!r} is missing or infinite in row {wrong[0] + 1}",
                code="not-finite",
                hint="leave empty cells out",
                column=name,
                line=int(wrong[0]) + 1,
            )
        low = np.flatnonzero(numbers < least)
        if low.size:
            raise InputError(
                f"column {name!r} is below {least:g} in row {low[0] + 1}",
                code="negative-number",
                column=name,
                line=int(low[0]) + 1,
            )
        return numbers

    def counts(self, name: str) -> npt.NDArray[np.int64]:
        """Return a column of numbers of contributors."""
        numbers = self.numbers(name, least=0.0)
        broken = np.flatnonzero(numbers != np.round(numbers))
        if broken.size:
            raise InputError(
                f"column {name!r} counts contributors but is not whole in row {broken[0] + 1}",
                code="not-a-count",
                column=name,
                line=int(broken[0]) + 1,
            )
        return numbers.astype(np.int64)

    def flags(self, name: str) -> npt.NDArray[np.bool_]:
        """Return a column as yes or no; missing means no."""
        words, places = self._words(name)
        known = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}
        self._require_known(words, known, name, "flag")
        values: npt.NDArray[np.bool_] = np.array([known[word] for word in words])[places]
        return values

    def statuses(self, name: str) -> npt.NDArray[np.int8]:
        """Return a column of status words as numbers; missing means safe."""
        words, places = self._words(name)
        known = {"": 0, **{member.word: int(member) for member in Status}}
        self._require_known(words, known, name, "status")
        values: npt.NDArray[np.int8] = np.array([known[w] for w in words], dtype=np.int8)[places]
        return values

    def _words(self, name: str) -> tuple[list[str], npt.NDArray[np.int64]]:
        import pyarrow as pa

        column = self.columns[name].combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        text = Cells({name: pa.chunked_array([column.cast(pa.string()).fill_null("")])})
        words, places = text.codes(name)
        return [word.strip().lower() for word in words], places

    def _require_known(
        self, words: Sequence[str], known: dict[str, Any], name: str, kind: str
    ) -> None:
        strange = next((word for word in words if word not in known), None)
        if strange is not None:
            choices = [word for word in known if word]
            raise InputError(
                f"column {name!r} holds the {kind} {strange!r}",
                code=f"unknown-{kind}",
                hint="use one of " + ", ".join(choices),
                column=name,
            )


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    is_ = pa.types
    return bool(
        is_.is_integer(kind)
        or is_.is_floating(kind)
        or is_.is_decimal(kind)
        or is_.is_boolean(kind)
    )
