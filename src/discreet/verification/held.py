"""What only the curator has, and what is therefore checked when a release is published."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Held", "Need"]


@dataclasses.dataclass(frozen=True)
class Need:
    """Between which values an attacker must not be able to place a withheld cell."""

    codes: tuple[str, ...]
    lower: float
    upper: float


@dataclasses.dataclass(frozen=True, eq=False)
class Held:
    """What a promise also speaks of and the files do not show; none of it is written.

    Everything is records or plain data: the verifier counts for itself.
    """

    #: The released records, with the unit and the weight that were taken out of them.
    records: pa.Table | None = None
    unit: str | None = None
    weight: str | None = None
    #: The confidential columns, and the unit, of the file before suppression.
    original: pa.Table | None = None
    #: For each confidential column its values in their order, as texts of the file.
    orders: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    #: For each value of a confidential column its groups, from the smallest to the whole.
    ancestors: Mapping[str, Mapping[str, Sequence[str]]] = dataclasses.field(default_factory=dict)
    #: The population in the values of the release: the keys of each person.
    population: pa.Table | None = None
    #: The owner of every record of a permuted release, with its group: columns group and unit.
    owners: pa.Table | None = None
    #: For each table, by its folder, what its sensitive cells need.
    needs: Mapping[str, Sequence[Need]] = dataclasses.field(default_factory=dict)
