"""Clusters of records whose columns several owners hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import RefusedError
from discreet.protocols.joint.learned import FOLLOW, NO_TWO_NODES, Leakage
from discreet.protocols.joint.methods._clusters import (
    even_start,
    known,
    moved,
    nearest_of,
    same_rows,
    squares,
)
from discreet.protocols.joint.protocol import Inputs, Outcome, Protocol, Seat, Split
from discreet.registry import parameter

__all__ = ["VerticalKMeans"]

Floats = npt.NDArray[np.float64]
#: Binary digits of distances in units of the largest that bounds allow.
_FINE = 44


@dataclasses.dataclass(frozen=True)
class VerticalKMeans(Protocol):
    """Group records into k clusters whose columns several owners hold, as Lloyd's algorithm does.

    Each owner computes distances in its own columns and shares them; three nodes add them up and
    find the nearest centre by comparisons on shares. Opened is to which cluster each record
    belongs; each owner moves its own part of the centres, and tells it at the end.

    Examples
    --------
    >>> from discreet.protocols.joint.rehearsal import rehearse_protocol
    >>> x = np.array([[1.0], [1.2], [0.8], [8.0], [8.2], [7.8]])
    >>> found = rehearse_protocol(VerticalKMeans(k=2), {"a": x, "b": 2 * x}).shown
    >>> found["centres"].round(3).tolist(), found["sizes"].tolist()
    ([[1.0, 2.0], [8.0, 16.0]], [3.0, 3.0])
    """

    name: ClassVar[str] = "vertical-k-means"
    reference: ClassVar[str] = "Vaidya and Clifton (2003), KDD"
    split: ClassVar[Split] = "vertical"
    centres: ClassVar[bool] = True
    caution: ClassVar[str] = (
        "owners and nodes see to which cluster each record belongs, in every step"
    )

    k: int = parameter(3, help="number of clusters", low=1, high=100)
    steps: int = parameter(50, help="at most so many steps", low=1, high=1000)
    least: int = parameter(3, help="smallest size of a cluster whose centre is told", low=1)

    @property
    def needs_nodes(self) -> bool:
        """Distances are compared on shares."""
        return True

    def start(self, bounds: Sequence[float]) -> Floats:
        """Return the centres to begin with: evenly between 0 and the bounds, known to all."""
        return even_start(self.k, bounds)

    def play(self, seat: Seat) -> Outcome:
        """Return centres and sizes, at the nodes."""
        cast = seat.cast
        rows = same_rows(seat)
        unit = sum(4 * bound**2 for bounds in cast.bounds.values() for bound in bounds)
        centres = self.start(cast.bounds[seat.name]) if seat.is_owner else None
        nearest: npt.NDArray[np.int64] | None = None
        for step in range(self.steps):
            own = None
            if centres is not None:
                assert seat.records is not None
                distances = squares(seat.records, centres).T / unit
                own = np.rint(distances * 2.0**_FINE).astype(np.int64)
            parts = seat.gather(own, (self.k, rows))
            found = None
            if parts:
                chosen = nearest_of(seat.node, sum(parts[1:], parts[0]))
                place = chosen.times(np.arange(self.k)[:, None]).sum()
                found = seat.open(place, f"the cluster of each record, step {step + 1}")
            found = seat.tell(found, (rows,), "opened clusters")
            if nearest is not None and np.array_equal(found, nearest):
                break
            nearest = found
            if centres is not None:
                assert seat.records is not None
                centres = moved(seat.records, nearest, centres)
        assert nearest is not None
        return self._told(seat, centres, nearest)

    def _told(self, seat: Seat, centres: Floats | None, nearest: npt.NDArray[np.int64]) -> Outcome:
        """Tell the centres to everybody, unless a cluster is too small."""
        sizes = np.bincount(nearest, minlength=self.k)
        if ((sizes > 0) & (sizes < self.least)).any():
            raise RefusedError(
                "a cluster is too small for its centre to be told",
                code="small-cluster",
                hint="ask for fewer clusters",
            )
        centres = None if centres is None else known(centres, sizes)
        meaning = "centres of the clusters"
        width = sum(map(len, seat.cast.bounds.values()))
        seat.announce(meaning, self.k * width)
        if centres is not None:
            for peer in seat.cast.everybody:
                if peer != seat.name:
                    seat.wire.send(peer, "opened centres", centres.astype("<f8").tobytes())
        found = []
        for owner in seat.cast.owners:
            columns = len(seat.cast.bounds[owner])
            if owner == seat.name:
                assert centres is not None
                found.append(centres)
            else:
                body = seat.wire.receive(owner, "opened centres", size=8 * self.k * columns)
                found.append(np.frombuffer(body, dtype="<f8").reshape(self.k, columns))
        whole = np.concatenate(found, axis=1)
        seat.wire.transcript.open(meaning, whole.tobytes(), cells=int(whole.size))
        shown = {"centres": whole, "sizes": sizes.astype(np.float64)}
        return Outcome(shown) if seat.is_node else Outcome()

    def plain(self, inputs: Inputs) -> Mapping[str, Floats]:
        """Return what Lloyd's algorithm finds from the same start."""
        whole = np.concatenate(list(inputs.values()), axis=1)
        centres = self.start(np.abs(whole).max(axis=0, initial=1e-9).tolist())
        nearest = np.zeros(len(whole), dtype=np.int64)
        for step in range(self.steps):
            found = squares(whole, centres).argmin(axis=1)
            if step and np.array_equal(found, nearest):
                break
            nearest = found
            centres = moved(whole, nearest, centres)
        sizes = np.bincount(nearest, minlength=self.k)
        return {"centres": known(centres, sizes), "sizes": sizes.astype(np.float64)}

    def leakage(self) -> Leakage:
        """Return what each party learns."""
        return Leakage.of(
            ("owner", "the cluster of each record in every step; the last centres",
             "where the others' columns decide, roughly where a record lies in them"),
            ("node", "the same; uniformly random words", "the same"),
            ("analyst", "the last centres and sizes", "what these say"),
            assumes=(FOLLOW, NO_TWO_NODES),
        )  # fmt: skip
