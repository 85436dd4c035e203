"""Facts: what a release tells, as data.

A release states them beside its evidence, and a ledger keeps them, so that later releases are judged
together with it. Linear facts are sums and counts over cells, exact or within bounds; class facts
are partitions of records; budget facts are privacy events; a release of another kind says that no
joint guarantee covers it. Facts hold what was published, and for each record its cell or class against
a keyed mark, never a withheld value.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Dimension
from discreet.errors import EngineError

__all__ = [
    "BudgetFacts", "ClassFacts", "Facts", "LinearFacts", "UncoveredFacts", "pack_facts",
    "unpack_facts",
]  # fmt: skip

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Marks = npt.NDArray[np.uint64]


@dataclasses.dataclass(frozen=True, eq=False)
class LinearFacts:
    """Sums or counts over the cells of a table.

    A cell is told where its bounds are numbers, exactly where they are equal; it is withheld where
    they are not a number.
    """

    form: ClassVar[str] = "linear"

    statistic: str
    measure: str | None
    by: tuple[str, ...]
    #: For each attribute its hierarchies, each as pairs of child and parent.
    hierarchies: tuple[tuple[tuple[tuple[str, str], ...], ...], ...]
    #: (cells, attributes): the codes of a cell, as places in the union of the hierarchies.
    codes: Ints
    lower: Floats
    upper: Floats
    #: Rules that say what is sensitive, with their parameters.
    rules: tuple[Mapping[str, Any], ...] = ()
    #: No set of fewer records or units may be told.
    k: int = 2
    attacker: str = "outsider"
    unit: str | None = None
    weight: str | None = None
    #: The code of records without a value.
    missing: str | None = None
    #: For each record of the snapshot, in the order of its roster, the number of its combination
    #: of codes; and the combinations, as rows of places.
    members: Ints = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))
    combinations: Ints = dataclasses.field(default_factory=lambda: np.zeros((0, 0), np.int64))
    #: For each record in that order a keyed mark of its unit and the amount that it adds: what of
    #: two snapshots has the same one is one unknown, whatever else of the row has changed. Empty
    #: without a unit: then records are known by their whole rows.
    identities: Ints = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))
    #: The same with the amount in two coarse scales, shifted against each other: amounts that
    #: differ by less than a tenth have the same mark in one of the two.
    near: Ints = dataclasses.field(default_factory=lambda: np.zeros((0, 0), np.int64))
    #: Other released measures that tell of this one, as the records were.
    kin: tuple[str, ...] = ()

    @functools.cached_property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The attributes with their codes."""
        return tuple(
            Dimension.of(name, [Hierarchy.from_pairs(pairs) for pairs in several])
            for name, several in zip(self.by, self.hierarchies, strict=True)
        )

    @property
    def quantity(self) -> tuple[str | None, str | None]:
        """What is added up: facts of different quantities share no unknown."""
        return self.measure if self.statistic != "count" else None, self.weight

    @property
    def withheld(self) -> npt.NDArray[np.bool_]:
        """Which cells are withheld."""
        return np.isnan(self.lower)

    @property
    def exact(self) -> npt.NDArray[np.bool_]:
        """Which cells are told exactly."""
        return np.asarray(self.lower == self.upper)

    def summary(self) -> str:
        """Return one line for people."""
        what = "counts" if self.measure is None else f"{self.statistic} of {self.measure}"
        told, hidden = len(self.lower) - int(self.withheld.sum()), int(self.withheld.sum())
        return f"{what} by {' × '.join(self.by)}: {told:,} cells told, {hidden:,} withheld"


@dataclasses.dataclass(frozen=True, eq=False)
class ClassFacts:
    """A partition of records into classes, in which a file of records tells them apart."""

    form: ClassVar[str] = "classes"

    keys: tuple[str, ...]
    #: Confidential columns that leave with the classes.
    confidential: tuple[str, ...]
    #: For each record of the snapshot, in the order of its roster, its class; −1 where it is left
    #: out.
    members: Ints
    models: tuple[Mapping[str, Any], ...] = ()

    def summary(self) -> str:
        """Return one line for people."""
        classes = len(np.unique(self.members[self.members >= 0]))
        out = int((self.members < 0).sum())
        return f"{classes:,} classes over {', '.join(self.keys)}; {out:,} records left out"


@dataclasses.dataclass(frozen=True, eq=False)
class BudgetFacts:
    """Privacy events, as the accountant spells them, and the entry that charged them."""

    form: ClassVar[str] = "budget"

    events: Mapping[str, int]
    charged: int

    def summary(self) -> str:
        """Return one line for people."""
        told = ", ".join(f"{count} × {name}" for name, count in sorted(self.events.items()))
        return f"charged by entry {self.charged}: {told}"


@dataclasses.dataclass(frozen=True, eq=False)
class UncoveredFacts:
    """A release that no joint guarantee covers, and why."""

    form: ClassVar[str] = "uncovered"

    reason: str

    def summary(self) -> str:
        """Return one line for people."""
        return f"no joint guarantee: {self.reason}"


Facts = LinearFacts | ClassFacts | BudgetFacts | UncoveredFacts
_FORMS: dict[str, Any] = {
    form.form: form for form in (LinearFacts, ClassFacts, BudgetFacts, UncoveredFacts)
}


def pack_facts(facts: Sequence[Facts]) -> bytes:
    """Return facts as bytes that a ledger keeps.

    >>> [one.summary() for one in unpack_facts(pack_facts([BudgetFacts({"pure 0.5": 2}, 7)]))]
    ['charged by entry 7: 2 × pure 0.5']
    """
    stated = [
        {"form": one.form} | {f.name: _plain(getattr(one, f.name)) for f in dataclasses.fields(one)}
        for one in facts
    ]
    return zlib.compress(json.dumps(stated, sort_keys=True).encode(), 6)


def unpack_facts(content: bytes) -> list[Facts]:
    """Return what `pack_facts` packed."""
    try:
        stated = json.loads(zlib.decompress(content))
        return [
            _FORMS[one["form"]](**{k: _read(v) for k, v in one.items() if k != "form"})
            for one in stated
        ]
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise EngineError(
            f"facts in the ledger cannot be read ({type(error).__name__})", code="ledger-not-whole"
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        narrow = _narrow(value)
        kept = base64.b64encode(zlib.compress(narrow.tobytes(), 6)).decode()
        return {"__array": kept, "type": narrow.dtype.str, "shape": list(narrow.shape)}
    return value


def _narrow(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return whole numbers in as few bytes as they need."""
    if array.dtype != np.int64 or not array.size:
        return array
    for kind in (np.int8, np.int16, np.int32):
        room = np.iinfo(kind)
        if array.min() >= room.min and array.max() <= room.max:
            return array.astype(kind)
    return array


def _read(value: Any) -> Any:
    if isinstance(value, dict) and "__array" in value:
        content = zlib.decompress(base64.b64decode(value["__array"]))
        array = np.frombuffer(content, dtype=np.dtype(value["type"])).reshape(value["shape"])
        return array.astype(np.int64) if array.dtype.kind == "i" else array.copy()
    if isinstance(value, list):
        return tuple(_read(one) for one in value)
    return value
