"""Clusters of the records of several owners."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.audit.rules.minimum_frequency import MinimumFrequency
from discreet.errors import RefusedError
from discreet.protocols.arithmetic.shares import Shares
from discreet.protocols.joint.judging import judge, see
from discreet.protocols.joint.learned import FOLLOW, NO_TWO_NODES, Leakage
from discreet.protocols.joint.methods._clusters import even_start, known, moved, squares
from discreet.protocols.joint.protocol import Inputs, Outcome, Protocol, Seat, Split
from discreet.registry import parameter

__all__ = ["JointKMeans"]

Floats = npt.NDArray[np.float64]
_SUMS = 20  # binary digits of sums of columns in units of their bounds


@dataclasses.dataclass(frozen=True)
class JointKMeans(Protocol):
    """Group the records of all owners into k clusters, as Lloyd's algorithm does.

    Owners assign their records to the nearest centre, and three nodes open sums and sizes of the
    clusters, until nothing changes. A cluster that has some records and fewer than `least`, in all
    or without those of one owner, ends the computation before it is opened.

    Examples
    --------
    >>> from discreet.protocols.joint.rehearsal import rehearse_protocol
    >>> parts = {one: [[0.1], [0.2], [0.3], [9.0], [9.1], [9.2]] for one in "abc"}
    >>> found = rehearse_protocol(JointKMeans(k=2), parts).shown
    >>> found["centres"].round(3).tolist(), found["sizes"].tolist()
    ([[0.2], [9.1]], [9.0, 9.0])
    """

    name: ClassVar[str] = "joint-k-means"
    reference: ClassVar[str] = "Jagannathan and Wright (2005), KDD; Vaidya and Clifton (2003), KDD"
    split: ClassVar[Split] = "horizontal"
    centres: ClassVar[bool] = True
    caution: ClassVar[str] = (
        "nodes see the centres of every step: where one record changed its cluster, the difference "
        "of two steps is that record"
    )

    k: int = parameter(3, help="number of clusters", low=1, high=100)
    steps: int = parameter(50, help="at most so many steps", low=1, high=1000)
    least: int = parameter(3, help="smallest size of a cluster", low=1)

    @property
    def needs_nodes(self) -> bool:
        """Sums are opened by nodes."""
        return True

    def start(self, bounds: tuple[float, ...]) -> Floats:
        """Return the centres to begin with: evenly between 0 and the bounds, known to all."""
        return even_start(self.k, bounds)

    def play(self, seat: Seat) -> Outcome:
        """Return centres and sizes."""
        bounds = np.array(seat.cast.bounds[seat.cast.owners[0]])
        centres, sizes = self.start(tuple(bounds)), np.zeros(self.k)
        shape = (self.k, 1 + len(bounds))
        for step in range(self.steps):
            own = None
            if seat.is_owner:
                assert seat.records is not None
                own = self._sums(seat.whole(_SUMS), seat.records, centres)
            parts = seat.gather(own, shape)
            found = None
            if parts:
                self._require_size(seat, parts, step)
                found = seat.open(
                    sum(parts[1:], parts[0]), f"sums and sizes of clusters, step {step + 1}"
                )
            found = seat.tell(found, shape, "opened clusters")
            sizes = found[:, 0].astype(np.float64)
            new = found[:, 1:] / 2.0**_SUMS / np.maximum(sizes, 1)[:, None] * bounds
            new = np.where(sizes[:, None] > 0, new, centres)
            if np.array_equal(new, centres):
                break
            centres = new
        shown = {"centres": known(centres, sizes), "sizes": sizes}
        return Outcome(shown) if seat.is_node else Outcome()

    @staticmethod
    def _sums(whole: npt.NDArray[np.int64], records: Floats, centres: Floats
              ) -> npt.NDArray[np.int64]:  # fmt: skip
        nearest = squares(records, centres).argmin(axis=1)
        found = np.zeros((len(centres), 1 + whole.shape[1]), dtype=np.int64)
        np.add.at(found, nearest, np.column_stack([np.ones(len(whole), dtype=np.int64), whole]))
        return found

    def _require_size(self, seat: Seat, parts: list[Shares], step: int) -> None:
        rule = MinimumFrequency(self.least)
        seen = see(seat.node, [part[:, 0] for part in parts], {}, {}, {}, collusion=1)
        bits = judge(seat.node, [rule], seen)
        if seat.open_bits(bits, f"which clusters are too small, step {step + 1}").any():
            raise RefusedError(
                "a cluster is too small to be opened",
                code="small-cluster",
                hint="ask for fewer clusters",
            )

    def plain(self, inputs: Inputs) -> Mapping[str, Floats]:
        """Return what Lloyd's algorithm finds from the same start."""
        whole = np.concatenate([np.asarray(one, dtype=np.float64) for one in inputs.values()])
        centres = self.start(tuple(np.abs(whole).max(axis=0, initial=1e-9)))
        for _ in range(self.steps):
            nearest = squares(whole, centres).argmin(axis=1)
            sizes = np.bincount(nearest, minlength=self.k).astype(np.float64)
            new = moved(whole, nearest, centres)
            if np.allclose(new, centres, rtol=0, atol=1e-12):
                break
            centres = new
        return {"centres": known(centres, sizes), "sizes": sizes}

    def leakage(self) -> Leakage:
        """Return what each party learns."""
        return Leakage.of(
            ("node", "centres and sizes of the clusters of every step",
             "where one record changed its cluster, that record"),
            ("owner", "the same", "the same"),
            ("analyst", "the last centres and sizes", "what these say"),
            assumes=(FOLLOW, NO_TWO_NODES),
        )  # fmt: skip
