"""The secure matrix product of Karr and others, for comparison."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import RefusedError
from discreet.protocols.joint.learned import FOLLOW, Leakage
from discreet.protocols.joint.methods._leverage import require_no_single_record
from discreet.protocols.joint.protocol import Inputs, Outcome, Protocol, Seat, Split
from discreet.registry import parameter

__all__ = ["KarrProduct"]


@dataclasses.dataclass(frozen=True)
class KarrProduct(Protocol):
    """Multiply the columns of two owners through a random projection, without a third party.

    The first owner gives g vectors orthogonal to its columns; the second takes them out of its own
    columns and returns the rest. For comparison only: what is returned tells much of the second
    owner's values, the more the fewer vectors were taken out.

    Examples
    --------
    >>> from discreet.protocols.joint.rehearsal import rehearse_protocol
    >>> x, y = np.arange(12.0).reshape(6, 2), np.ones((6, 1))
    >>> found = rehearse_protocol(KarrProduct(share=0.5), {"a": x, "b": y})
    >>> found.shown["product"].round(6).tolist()
    [[30.0], [36.0]]
    """

    name: ClassVar[str] = "karr-product"
    reference: ClassVar[str] = (
        "Karr, Lin, Sanil and Reiter (2009), Journal of Official Statistics 25"
    )
    split: ClassVar[Split] = "vertical"
    most: ClassVar[int] = 2
    linear: ClassVar[bool] = True
    caution: ClassVar[str] = (
        "the first owner sees the second's columns less a projection, and guesses values from it"
    )

    hides: ClassVar[bool] = False

    share: float = parameter(0.5, help="share of the dimensions taken out", low=0.01, high=0.9)

    def admit(self, records: npt.NDArray[np.float64]) -> None:
        """Refuse columns that single a record out, as the other products do."""
        require_no_single_record(records)

    def play(self, seat: Seat) -> Outcome:
        """Return the product, at the first owner."""
        first, second = seat.cast.owners
        assert seat.records is not None  # only owners take part
        rows = len(seat.records)
        if seat.name == first:
            taken = max(1, int(self.share * (rows - seat.records.shape[1])))
            drawn = seat.rng.normal(rows * taken).reshape(rows, taken)
            basis, _ = np.linalg.qr(np.hstack([seat.records, drawn]))
            kept = basis[:, seat.records.shape[1] :]
            seat.send_words(second, "vectors", np.array([[taken, rows]], dtype=np.uint64))
            seat.send_words(second, "basis", kept.view(np.uint64))
            width = len(seat.cast.bounds[second])
            meaning = f"sums of {seat.records.shape[1] * width} products over {rows} records"
            seat.announce(meaning, seat.records.shape[1] * width)
            rest = seat.receive_words(second, "rest", columns=width).view(np.float64)
            found = seat.records.T @ rest
            seat.wire.transcript.open(meaning, found.tobytes(), cells=int(found.size))
            return Outcome({"product": found}, {"rest": rest})
        taken, theirs = seat.receive_words(first, "vectors", columns=2)[0].tolist()
        if theirs != rows or taken > rows:
            raise RefusedError(
                "the owners hold different numbers of records",
                code="not-aligned",
                hint="align the records of the owners first",
            )
        basis = seat.receive_words(first, "basis", columns=taken).view(np.float64)
        rest = seat.records - basis @ (basis.T @ seat.records)
        seat.send_words(first, "rest", np.ascontiguousarray(rest).view(np.uint64))
        return Outcome()

    def plain(self, inputs: Inputs) -> Mapping[str, npt.NDArray[np.float64]]:
        """Return X'Y."""
        x, y = inputs.values()
        return {"product": x.T @ y}

    def leakage(self) -> Leakage:
        """Return what each party learns."""
        return Leakage.of(
            ("first owner", "the second's columns less their projection on vectors it chose",
             "many of the second's values, nearly"),
            ("second owner", "vectors orthogonal to the first's columns",
             "in which space the first's columns lie"),
            ("analyst", "the sums of products", "what they say"),
            assumes=(FOLLOW, "not safe: use matrix-product where a dealer can be found"),
        )  # fmt: skip
