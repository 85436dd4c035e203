"""Sums over all owners of which no owner's part is seen."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from discreet.errors import InfeasibleError, InputError
from discreet.protocols.arithmetic.fixed_point import EXACT, encode, require_room
from discreet.protocols.joint.learned import FOLLOW, NO_TWO_NODES, Leakage
from discreet.protocols.joint.methods import _aggregation
from discreet.protocols.joint.noise import NoisePlan, shared_noise
from discreet.protocols.joint.protocol import Inputs, Outcome, Protocol, Seat, Split
from discreet.registry import parameter

__all__ = ["SecureSum"]


@dataclasses.dataclass(frozen=True)
class SecureSum(Protocol):
    """Add up the numbers and columns of all owners; no owner's part is seen by anybody.

    Three nodes add shares; or one aggregator adds masked parts, whose masks cancel, and which
    survives owners that go away as long as `threshold` of them stay. Each owner first judges its own
    part by the agreed rules, and takes no part where it is sensitive: then every sum of parts is
    safe too, for whoever subtracts parts from it.

    With `epsilon`, every owner adds discrete Gaussian noise to its part, drawn by OpenDP, so that the
    noise of all owners but `colluding` many protects each person; values are clamped to the declared
    bounds, and the loss is charged in every owner's ledger before anything leaves. By the law
    `laplace` every owner adds all of the noise: exactly ε, with √n times the error.

    Examples
    --------
    >>> from discreet.protocols.joint.rehearsal import rehearse_protocol
    >>> parts = {"a": [[1.0], [2.5]], "b": [[4.0]], "c": [[0.5]]}
    >>> found = rehearse_protocol(SecureSum(), parts)
    >>> found.shown["count"].tolist(), found.shown["sum"].tolist()
    ([4.0], [8.0])
    """

    name: ClassVar[str] = "secure-sum"
    reference: ClassVar[str] = "Bonawitz et al. (2017), Practical secure aggregation, CCS"
    split: ClassVar[Split] = "horizontal"
    judges_parts: ClassVar[bool] = True

    by: Literal["nodes", "aggregator"] = parameter(
        "nodes", help="three nodes on shares, or one aggregator that survives drop-outs"
    )
    decimals: int = parameter(2, help="digits after the point that are kept", low=0, high=6)
    threshold: int = parameter(
        0, help="owners that must stay to the end; 0 for more than half", low=0, high=16
    )
    epsilon: float = parameter(0.0, help="noise for this epsilon (ρ = ε²/2); 0 for none", low=0)
    law: Literal["gaussian", "laplace"] = parameter(
        "gaussian", help="discrete Gaussian in parts, or Laplace in full by every owner (pure ε)"
    )
    colluding: int = parameter(0, help="owners whose noise is not counted on", low=0, high=15)

    @property
    def needs_nodes(self) -> bool:
        """Shares are added by nodes."""
        return self.by == "nodes"

    @property
    def needs_dealer(self) -> bool:
        """The aggregator sits in the dealer's seat: it holds no records."""
        return self.by == "aggregator"

    @property
    def survives(self) -> bool:
        """Masks of owners that went away are put together by those who stay."""
        return self.by == "aggregator"

    def stay(self, owners: int) -> int:
        """Return how many owners must stay.

        More than half: then no aggregator can ask some of them for the one secret of an owner and
        the rest for the other.
        """
        most = owners // 2 + 1
        if self.threshold > owners or 0 < self.threshold < most:
            raise InputError(
                f"secure-sum: threshold {self.threshold} does not fit {owners} owners",
                code="threshold",
                hint=f"choose {most} to {owners}",
                parameter="threshold",
            )
        return self.threshold or most

    def noise(self, owners: int, bounds: tuple[float, ...]) -> NoisePlan | None:
        """Return the noise of each owner and what it costs, or None where none was asked for."""
        if not self.epsilon:
            return None
        units = [1, *(int(np.ceil(bound * 10**self.decimals)) for bound in bounds)]
        if self.law == "laplace":
            return NoisePlan.in_full(self.epsilon, units)
        shares = (self.stay(owners) if self.by == "aggregator" else owners) - self.colluding
        return NoisePlan.of(self.epsilon, units, shares=shares)

    def play(self, seat: Seat) -> Outcome:
        """Return the sums, at the nodes or the aggregator."""
        owners = seat.cast.owners
        bounds = seat.cast.bounds[owners[0]]
        size = 1 + len(bounds)
        own = self._part(seat, bounds) if seat.is_owner else None
        meaning = "the number of records and the sums over all owners"
        if self.by == "aggregator":
            stay = self.stay(len(owners))
            if own is not None:
                _aggregation.contribute(seat, own, stay)
                return Outcome()
            total, there = _aggregation.aggregate(seat, size, stay, meaning)
        else:
            parts = seat.gather(own, (size,))
            if not parts:
                return Outcome()
            total, there = seat.open(sum(parts[1:], parts[0]), meaning), len(owners)
        if (np.abs(total) >= EXACT).any():
            raise InfeasibleError(
                "a sum has more digits than a result can show",
                code="bounds-too-wide",
                hint="agree on fewer decimals",
            )
        return Outcome(
            {
                "owners": np.array([float(there)]),
                "count": total[:1].astype(np.float64),
                "sum": total[1:] / 10.0**self.decimals,
            }
        )

    def _part(self, seat: Seat, bounds: tuple[float, ...]) -> npt.NDArray[np.int64]:
        assert seat.records is not None
        records, scale = seat.records, 10**self.decimals
        plan = self.noise(len(seat.cast.owners), bounds)
        if plan is not None:
            records = np.clip(records, 0.0, np.array(bounds))
        for bound in bounds:
            most = int(np.ceil(bound * scale)) * max(len(records), 1) * len(seat.cast.owners)
            require_room(most, what="the sum")
        whole = encode(records, scale=scale, bound=max(bounds, default=1.0), name="records")
        part = np.concatenate([[len(records)], whole.sum(axis=0, dtype=np.int64)])
        return part if plan is None else shared_noise(plan, part)

    def plain(self, inputs: Inputs) -> Mapping[str, npt.NDArray[np.float64]]:
        """Return the number of records and the sums."""
        parts = [np.asarray(one, dtype=np.float64) for one in inputs.values()]
        return {
            "owners": np.array([float(len(parts))]),
            "count": np.array([float(sum(map(len, parts)))]),
            "sum": np.sum([one.sum(axis=0) for one in parts], axis=0),
        }

    def leakage(self) -> Leakage:
        """Return what each party learns."""
        what = "the number of records and the sums over all owners"
        if self.epsilon:
            what += ", with noise"
        hides = (
            "what differential privacy of this epsilon leaves"
            if self.epsilon
            else "of the others the sum of their parts, each of which meets the rules by itself"
        )
        nodes = (
            ("node", f"{what}; uniformly random words", hides)
            if self.needs_nodes
            else ("aggregator", f"{what}; masked parts; which owners stayed", hides)
        )
        collusion = (
            NO_TWO_NODES
            if self.needs_nodes
            else "the aggregator puts its messages together with fewer owners than the threshold"
        )
        return Leakage.of(
            nodes,
            ("owner", "which other owners take part", "nothing of their records"),
            ("analyst", what, hides),
            assumes=(FOLLOW, collusion, "an owner that takes no part has a part that a rule finds "
                     "sensitive, or was not there"),
        )  # fmt: skip
