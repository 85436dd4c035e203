"""The databases that hold fragments, as the controller reaches them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.engines import connect
from discreet.errors import InputError
from discreet.randomness import Randomness

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ROW_ID", "Cloud", "Clouds", "order_of", "selected"]

#: The column that numbers the rows of a fragment, in its own order.
ROW_ID = "fragment_row"


def order_of(seed: bytes, size: int) -> npt.NDArray[np.int64]:
    """Return which record lies in each row of a fragment."""
    return np.argsort(Randomness.keyed(seed, b"order of a fragment").words(size), kind="stable")


def selected(relation: str, names: Sequence[str]) -> exp.Select:
    """Return the statement that fetches columns."""
    columns = [exp.column(name, quoted=True) for name in names]
    return exp.select(*columns).from_(exp.to_identifier(relation, quoted=True))


@dataclasses.dataclass(frozen=True)
class Cloud:
    """One database: its address, its columns, and the seed of its order."""

    address: str
    columns: tuple[str, ...]
    seed: bytes = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Clouds:
    """The databases that hold the fragments of one relation."""

    relation: str
    records: int
    clouds: tuple[Cloud, ...]

    @classmethod
    def open(cls, keys: str | Path) -> Self:
        """Return the fragments that a controller's file describes."""
        try:
            stated = json.loads(Path(keys).read_text(encoding="utf-8"))
            clouds = tuple(
                Cloud(str(one["address"]), tuple(one["columns"]), bytes.fromhex(one["seed"]))
                for one in stated["clouds"]
            )
            return cls(str(stated["relation"]), int(stated["records"]), clouds)
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(
                "the file does not describe fragments", code="not-fragments", file=Path(keys),
                hint="give the file that `discreet fragments split` wrote",
            ) from None  # fmt: skip

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each cloud."""
        return tuple(cloud.columns for cloud in self.clouds)

    def fetch(self, cloud: Cloud, query: exp.Query) -> pa.Table:
        """Return what one cloud answers about its fragment."""
        with contextlib.closing(connect(cloud.address)) as engine:
            return engine.aggregate(query, {self.relation: engine.table(self.relation)})
