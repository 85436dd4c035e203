"""Clusters of records of which any owner may hold any value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.audit.rules.minimum_frequency import MinimumFrequency
from discreet.errors import RefusedError
from discreet.protocols.arithmetic.comparison import less, negative, numbers
from discreet.protocols.arithmetic.fixed_point import encode
from discreet.protocols.arithmetic.node import Node
from discreet.protocols.arithmetic.shares import Shares
from discreet.protocols.arithmetic.solving import BITS, reciprocal, times
from discreet.protocols.joint.judging import judge, see
from discreet.protocols.joint.learned import FOLLOW, NO_TWO_NODES, Leakage
from discreet.protocols.joint.methods._clusters import (
    even_start,
    moved,
    nearest_of,
    same_rows,
    squares,
)
from discreet.protocols.joint.protocol import Inputs, Outcome, Protocol, Seat, Split
from discreet.registry import parameter

__all__ = ["ArbitraryKMeans"]

Floats = npt.NDArray[np.float64]
#: Binary digits of values in units of their bounds; centres have `BITS`.
_FINE = 20
#: Sums of so many values are cut to fixed point and go wrong with a chance of 2^-26.
_MOST_ROWS = (1 << 17) - 1
#: Differences of distances stay below 2^62: values and centres take 37 digits, six terms three.
_WEIGHTS = 62 - _FINE - BITS - 3


@dataclasses.dataclass(frozen=True)
class ArbitraryKMeans(Protocol):
    """Group records into k clusters where each single value lies with some owner, none with two.

    All owners list the same records and columns; a value that another owner holds is missing. Who
    holds which is not told. Three nodes run Lloyd's algorithm on shares: records, centres, sizes and
    the cluster of each record stay secret, and each step opens only whether a record changed its
    cluster. At the end sums and sizes of the clusters are opened, unless a cluster has fewer than
    `least` values in a column, in all or without those of one owner.

    Examples
    --------
    >>> from discreet.protocols.joint.rehearsal import rehearse_protocol
    >>> no = np.nan
    >>> a = np.array([[1.0, no], [no, 2.4], [0.8, 1.6], [8.0, no], [no, no], [7.8, no]])
    >>> b = np.array([[no, 2.0], [1.2, no], [no, no], [no, 16.0], [8.2, 16.4], [no, 15.6]])
    >>> found = rehearse_protocol(ArbitraryKMeans(k=2, least=1), {"a": a, "b": b}).shown
    >>> found["centres"].round(3).tolist(), found["sizes"].tolist()
    ([[1.0, 2.0], [8.0, 16.0]], [3.0, 3.0])
    """

    name: ClassVar[str] = "arbitrary-k-means"
    reference: ClassVar[str] = "Jagannathan and Wright (2005), KDD"
    split: ClassVar[Split] = "arbitrary"
    centres: ClassVar[bool] = True

    k: int = parameter(3, help="number of clusters", low=1, high=100)
    steps: int = parameter(50, help="at most so many steps", low=1, high=1000)
    least: int = parameter(3, help="smallest number of values behind a centre", low=1)

    @property
    def needs_nodes(self) -> bool:
        """Everything is computed on shares."""
        return True

    def play(self, seat: Seat) -> Outcome:
        """Return centres and sizes, at the nodes."""
        bounds = np.array(seat.cast.bounds[seat.cast.owners[0]])
        rows = same_rows(seat)
        if not 0 < rows <= _MOST_ROWS:
            raise RefusedError(
                f"there are no records, or more than {_MOST_ROWS:,}, to cluster on shares",
                code="number-of-records",
                hint="offer records, or a sample of them",
            )
        shape = (2, rows, len(bounds))
        parts = seat.gather(self._part(seat, bounds), shape)
        if not parts:
            return Outcome()
        node, held = seat.node, [part[1] for part in parts]
        values = sum((part[0] for part in parts[1:]), parts[0][0])
        self._require_split(seat, sum(held[1:], held[0]))
        chosen = self._clusters(seat, values, bounds)
        sizes = [node.matrix_product(chosen, one, "sizes") for one in held]
        sums = node.matrix_product(chosen, values, "sums")
        self._require_size(seat, sizes)
        whole = Shares(
            np.column_stack([chosen.own.sum(axis=1), sums.own]),
            np.column_stack([chosen.next.sum(axis=1), sums.next]),
        )
        opened = seat.open(whole, "sums and sizes of the clusters")
        return Outcome(_centres(opened[:, 0], opened[:, 1:] / 2.0**_FINE * bounds))

    @staticmethod
    def _part(seat: Seat, bounds: Floats) -> npt.NDArray[np.int64] | None:
        """Return an owner's values, zero where it has none, and where it has some."""
        if not seat.is_owner:
            return None
        assert seat.records is not None
        there = ~np.isnan(seat.records)
        scaled = np.where(there, seat.records, 0.0) / bounds
        return np.stack(
            [encode(scaled, scale=1 << _FINE, bound=1.0, name="records"), there.astype(np.int64)]
        )

    @staticmethod
    def _require_split(seat: Seat, holders: Shares) -> None:
        """See that each value lies with exactly one owner; opens whether, not where."""
        node = seat.node
        wrong = (holders - node.constant(np.ones(holders.own.shape, dtype=np.int64))).reshape(1, -1)
        squared = node.matrix_product(wrong, wrong.reshape(-1, 1), "holders").reshape(1)
        bits = negative(node, -squared)
        if seat.open_bits(bits, "whether a value lies with two owners or with none").any():
            raise RefusedError(
                "a value lies with two owners, or with none",
                code="not-split",
                hint="each owner leaves out the values that another one holds",
            )

    def _clusters(self, seat: Seat, values: Shares, bounds: Floats) -> Shares:
        """Return the cluster of each record: one there, zero elsewhere; clusters are the rows."""
        node, rows = seat.node, len(values)
        weights = _weights(bounds)
        start = np.rint(even_start(self.k, [1.0] * len(bounds)) * 2.0**BITS).astype(np.int64)
        centres, chosen = node.constant(start), None
        across = Shares(values.own.T, values.next.T)
        for step in range(self.steps):
            # |x − c|² without |x|²: the same for all centres.
            weighted = centres.times(weights)
            lengths = node.multiply(weighted, centres, "lengths").sum(axis=1)
            crossed = node.matrix_product(weighted, across, "distances").times(2)
            lengths = lengths.times(1 << (_FINE - BITS)).reshape(-1, 1)
            before, chosen = chosen, nearest_of(node, _spread(lengths, rows) - crossed)
            if before is not None:
                kept = node.matrix_product(
                    chosen.reshape(1, -1), before.reshape(-1, 1), "kept"
                ).reshape(1)
                changed = negative(node, kept - node.constant(np.array([rows])))
                if not seat.open_bits(changed, f"whether a cluster changed, step {step + 1}").any():
                    break
            if step + 1 < self.steps:
                centres = self._moved(node, values, chosen, centres)
        assert chosen is not None
        return chosen

    def _moved(self, node: Node, values: Shares, chosen: Shares, centres: Shares) -> Shares:
        """Return the means of the clusters on shares; an empty one stays where it is.

        Sums and sizes are first multiplied by the power of two that brings the size between half and
        all of 2^digits, so that the reciprocal has all its places.
        """
        digits = len(values).bit_length()
        sizes = chosen.sum(axis=1)
        sums = node.matrix_product(chosen, values, "sums")
        powers = np.array([1 << place for place in range(digits)])
        limits = node.constant(np.repeat(powers[:, None], self.k, axis=1))
        least = numbers(node, less(node, _spread(sizes.reshape(1, -1), digits, axis=0), limits))
        least = node.constant(np.ones((digits, self.k), dtype=np.int64)) - least
        # One in place e where the size reaches 2^e: 2^(digits−1), halved for each further place.
        halved = least[1:].times(powers[::-1][1:, None]).sum()
        factor = node.constant(np.full(self.k, 1 << (digits - 1))) - halved
        both = Shares(
            np.column_stack([sizes.own, sums.own]), np.column_stack([sizes.next, sums.next])
        )
        scaled = node.multiply(both, factor.reshape(-1, 1), "scaled")
        unit = scaled[:, 0].times(1 << (BITS - digits))
        cut = node.truncate(scaled[:, 1:], digits + _FINE - BITS)
        means = times(node, cut, reciprocal(node, unit).reshape(-1, 1))
        return centres + node.multiply(least[0].reshape(-1, 1), means - centres, "choose")

    def _require_size(self, seat: Seat, sizes: list[Shares]) -> None:
        """See that no centre tells a few values, to anybody or to an owner who knows its own."""
        counts = [one.reshape(-1) for one in sizes]
        seen = see(seat.node, counts, {}, {}, {}, collusion=1)
        bits = judge(seat.node, [MinimumFrequency(self.least)], seen)
        if seat.open_bits(bits, "which centres are of too few values").any():
            raise RefusedError(
                "a cluster is too small to be opened",
                code="small-cluster",
                hint="ask for fewer clusters",
            )

    def plain(self, inputs: Inputs) -> Mapping[str, Floats]:
        """Return what Lloyd's algorithm finds from the same start."""
        whole = np.nansum(np.stack([np.asarray(one) for one in inputs.values()]), axis=0)
        centres = even_start(self.k, np.abs(whole).max(axis=0, initial=1e-9).tolist())
        nearest = np.full(len(whole), -1)
        for _ in range(self.steps):
            found = squares(whole, centres).argmin(axis=1)
            if np.array_equal(found, nearest):
                break
            nearest, centres = found, moved(whole, found, centres)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, whole)
        return _centres(np.bincount(nearest, minlength=self.k), sums)

    def leakage(self) -> Leakage:
        """Return what each party learns."""
        steps = "how many steps it took; uniformly random words"
        return Leakage.of(
            ("node", f"the last sums and sizes of the clusters; {steps}", "what these say"),
            ("owner", "the number of records", "nothing, where it is no node"),
            ("analyst", "the last centres and sizes", "what these say"),
            assumes=(FOLLOW, NO_TWO_NODES,
                     "records within about 2^-15 of the range from the middle between two centres "
                     "may fall to either"),
        )  # fmt: skip


def _weights(bounds: Floats) -> npt.NDArray[np.int64]:
    """Return the squared units of the columns as whole numbers, as fine as there is room for."""
    ratios = (bounds / bounds.max()) ** 2
    fine = _WEIGHTS - int(np.ceil(np.log2(ratios.sum())))
    return np.asarray(np.maximum(np.floor(ratios * 2.0**fine), 1).astype(np.int64))


def _spread(x: Shares, size: int, axis: int = 1) -> Shares:
    return Shares(np.repeat(x.own, size, axis=axis), np.repeat(x.next, size, axis=axis))


def _centres(sizes: npt.NDArray[np.int64], sums: Floats) -> dict[str, Floats]:
    """Return the result; the centre of an empty cluster is not known."""
    centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], np.nan)
    return {"centres": centres, "sizes": sizes.astype(np.float64)}
