"""Covariances of columns in different clouds, without fetching them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.protocols.arithmetic.shares import Words
from discreet.protocols.fragments.clouds import ROW_ID, Clouds, order_of, selected
from discreet.protocols.joint.learned import FOLLOW, Leakage
from discreet.protocols.joint.methods._base import Outcome, Seat
from discreet.protocols.joint.methods.matrix_product import MatrixProduct, summand
from discreet.protocols.joint.rehearsal import rehearse_protocol
from discreet.report import Report, Rows

if TYPE_CHECKING:
    import pandas

__all__ = ["ControlledProduct", "Covariances", "covariances"]

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class ControlledProduct(MatrixProduct):
    """Multiply columns of two clouds; the controller deals the masks and alone learns the sums."""

    name: ClassVar[str] = "controlled-product"
    reference: ClassVar[str] = "Du, Han and Chen (2004), Privacy-preserving multivariate analysis"

    def added(self, seat: Seat, part: Words | None, rows: int, bits: int) -> Outcome:
        """Add the summands of both clouds at the controller, who dealt the masks."""
        dealer, clouds = seat.cast.dealer, seat.cast.owners
        assert dealer is not None
        if part is not None:
            seat.wire.send(dealer, "opened", part.astype("<u8").tobytes())
            return Outcome()
        shape = tuple(len(seat.cast.bounds[cloud]) for cloud in clouds)
        meaning = f"sums of {shape[0] * shape[1]} products over {rows} records"
        seat.announce(meaning, shape[0] * shape[1])
        parts = [summand(seat, cloud, shape) for cloud in clouds]
        return self.opened(seat, parts[0] + parts[1], bits, meaning)

    def leakage(self) -> Leakage:
        """Return what each party learns."""
        return Leakage.of(
            ("cloud", "columns of another cloud under a mask used once; the common order of records",
             "nothing; clouds that put their fragments together can link them"),
            ("controller", "the sums of products", "what they say"),
            assumes=(FOLLOW, "clouds put nothing together"),
        )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class Covariances(Report):
    """Covariances over fragments, and the bytes that the controller sent and received for them."""

    frame: pandas.DataFrame
    controller_bytes: int
    leakage: Leakage

    def rows(self) -> Rows:
        """Return one line for each column."""
        lines = [(name, *map(float, row)) for name, row in self.frame.iterrows()]
        return ("column", *map(str, self.frame.columns)), lines


def covariances(fragments: Clouds, columns: Sequence[str]) -> Covariances:
    """Return the covariances of some columns, wherever they are.

    Columns of one cloud are multiplied there. For those of two clouds each gets the seed of its own
    order and of a mask, so that what the controller sends does not grow with the records.
    """
    import pandas as pd

    held: dict[int, list[str]] = {}
    for name in columns:
        where = [place for place, cloud in enumerate(fragments.clouds) if name in cloud.columns]
        if not where:
            raise InputError(f"there is no column {name!r}", code="unknown-column")
        held.setdefault(where[0], []).append(name)
    centred = {place: _centred(fragments, place, names) for place, names in held.items()}
    frame = pd.DataFrame(np.nan, index=list(columns), columns=list(columns))
    sent = 0
    for a, (first, x) in centred.items():
        frame.loc[first, first] = x.T @ x / (fragments.records - 1)
        for b, (second, y) in centred.items():
            if b <= a:
                continue
            # Each cloud scales its columns to one and tells the controller by what.
            scales = [np.maximum(np.abs(one).max(axis=0), 1e-300) for one in (x, y)]
            run = rehearse_protocol(ControlledProduct(), {"a": x / scales[0], "b": y / scales[1]})
            sent += 2 * 32 + sum(8 * one.size for one in scales)
            sent += sum(
                way["bytes"]
                for direction in ("sent", "received")
                for way in run.transcripts["dealer"].to_dict()[direction].values()
            )
            found = run.shown["product"] * np.outer(*scales) / (fragments.records - 1)
            frame.loc[first, second] = found
            frame.loc[second, first] = found.T
    return Covariances(frame, sent, ControlledProduct().leakage())


def _centred(fragments: Clouds, place: int, names: list[str]) -> tuple[list[str], Floats]:
    """Return what a cloud computes with: its columns less their means, in the order of the records."""
    cloud = fragments.clouds[place]
    table = fragments.fetch(cloud, selected(fragments.relation, [*names, ROW_ID]))
    rows = table.column(ROW_ID).to_numpy()
    values = np.stack([np.asarray(table.column(n).to_pylist(), np.float64) for n in names], axis=1)
    found = np.empty_like(values)
    found[order_of(cloud.seed, fragments.records)[rows]] = values
    return names, found - found.mean(axis=0)
