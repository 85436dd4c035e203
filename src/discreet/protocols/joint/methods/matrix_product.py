"""Products of columns that two owners hold of the same records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import RefusedError
from discreet.protocols.arithmetic.shares import Words, words
from discreet.protocols.joint.learned import FOLLOW, Leakage
from discreet.protocols.joint.methods._leverage import require_no_single_record
from discreet.protocols.joint.protocol import Inputs, Outcome, Protocol, Seat, Split
from discreet.protocols.joint.seat import fraction_bits
from discreet.randomness import Randomness

__all__ = ["MatrixProduct", "product_in_parts"]

_SEED = 32
Floats = npt.NDArray[np.float64]
_MOST_RECORDS = 1 << 26


def _masks(seed: bytes, rows: int, columns: int) -> Words:
    return Randomness.keyed(seed, b"product").words(rows * columns).reshape(rows, columns)


def _number(seat: Seat, peer: str) -> int:
    rows = int(np.frombuffer(seat.wire.receive(peer, "records", size=8), dtype="<u8")[0])
    if rows > _MOST_RECORDS:
        raise RefusedError("there are too many records for a product", code="message-unexpected")
    return rows


def same_records(seat: Seat, first: str, second: str) -> int:
    """Return how many records both owners have, or refuse: both must have the same ones."""
    if seat.name == seat.cast.dealer:
        found = _number(seat, first), _number(seat, second)
    else:
        assert seat.records is not None  # an owner
        mine, other = len(seat.records), second if seat.name == first else first
        for peer in (other, seat.cast.dealer):
            if peer is not None:
                seat.wire.send(peer, "records", np.array([mine], dtype="<u8").tobytes())
        found = mine, _number(seat, other)
    if found[0] != found[1]:
        raise RefusedError(
            "the owners hold different numbers of records",
            code="not-aligned",
            hint="align the records of the owners first",
        )
    return found[0]


def deal_seeds(seat: Seat, first: str, second: str) -> tuple[bytes, bytes]:
    """Deal the masks of both owners as seeds, at the dealer: nobody need know of how many records."""
    seeds = seat.rng.bytes(_SEED), seat.rng.bytes(_SEED)
    for owner, seed in zip((first, second), seeds, strict=True):
        seat.wire.send(owner, "seed", seed)
    return seeds


def product_in_parts(
    seat: Seat,
    first: str,
    second: str,
    mine: npt.NDArray[np.int64] | None,
    rows: int,
    *,
    seeds: tuple[bytes, bytes] | None = None,
) -> Words | None:
    """Return this owner's summand of X'Y; X is held by the first owner, Y by the second.

    The dealer deals masks R_A, R_B as seeds, and r_A + r_B = R_A'R_B. Both owners see the other's
    columns under a mask that is used once. `seeds` are those that the dealer dealt already.
    """
    p, q = (len(seat.cast.bounds[owner]) for owner in (first, second))
    dealer = seat.cast.dealer
    assert dealer is not None
    if seat.name == dealer:
        seeds = deal_seeds(seat, first, second) if seeds is None else seeds
        a = seat.rng.words(p * q).reshape(p, q)
        b = _masks(seeds[0], rows, p).T @ _masks(seeds[1], rows, q) - a
        for owner, part in ((first, a), (second, b)):
            seat.wire.send(owner, "masks", part.astype("<u8").tobytes())
        return None
    assert mine is not None
    seed = bytes(seat.wire.receive(dealer, "seed", size=_SEED))
    mask = _masks(seed, rows, p if seat.name == first else q)
    other, width = (second, q) if seat.name == first else (first, p)
    seat.send_words(other, "masked columns", words(mine) + mask)
    seen = seat.receive_words(other, "masked columns", columns=width)
    if len(seen) != rows:
        raise RefusedError("a matrix of another size was due", code="message-unexpected")
    # Dealt while the columns were under way.
    dealt = seat.wire.receive(dealer, "masks", size=8 * p * q)
    correction = np.frombuffer(dealt, dtype="<u8").reshape(p, q).astype(np.uint64)
    if seat.name == first:
        return np.asarray(words(mine).T @ seen + correction)
    return np.asarray(correction - seen.T @ mask)


def summand(seat: Seat, owner: str, shape: tuple[int, ...]) -> Words:
    """Return the summand of a product that an owner opens to this party."""
    body = seat.wire.receive(owner, "opened", size=8 * shape[0] * shape[1])
    return np.frombuffer(body, dtype="<u8").reshape(shape).astype(np.uint64)


@dataclasses.dataclass(frozen=True)
class MatrixProduct(Protocol):
    """Multiply the columns of two owners, record by record, and open the sums of the products.

    A commodity server deals masks and sees no data. The first owner learns X'Y, and nothing else
    of Y; the second learns nothing.

    Examples
    --------
    >>> from discreet.protocols.joint.rehearsal import rehearse_protocol
    >>> x, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [0.5]])
    >>> found = rehearse_protocol(MatrixProduct(), {"a": x, "b": y})
    >>> found.shown["product"].round(6).tolist()
    [[2.5], [4.0]]
    """

    name: ClassVar[str] = "matrix-product"
    reference: ClassVar[str] = (
        "Beaver (1997), Commodity-based cryptography; Du, Han and Chen (2004)"
    )
    split: ClassVar[Split] = "vertical"
    most: ClassVar[int] = 2
    linear: ClassVar[bool] = True

    @property
    def needs_dealer(self) -> bool:
        """Masks are dealt."""
        return True

    def admit(self, records: Floats) -> None:
        """Refuse columns that single a record out: the product would be the other's value of it."""
        require_no_single_record(records)

    def play(self, seat: Seat) -> Outcome:
        """Return the product, at the first owner."""
        first, second = seat.cast.owners
        seeds = deal_seeds(seat, first, second) if seat.name == seat.cast.dealer else None
        rows = same_records(seat, first, second)
        bits = fraction_bits(rows)
        mine = seat.whole(bits) if seat.is_owner else None
        part = product_in_parts(seat, first, second, mine, rows, seeds=seeds)
        return self.added(seat, part, rows, bits)

    def added(self, seat: Seat, part: Words | None, rows: int, bits: int) -> Outcome:
        """Add the summands of both owners at the first."""
        first, second = seat.cast.owners
        if part is None:
            return Outcome()
        if seat.name == second:
            seat.wire.send(first, "opened", part.astype("<u8").tobytes())
            return Outcome()
        meaning = f"sums of {part.size} products over {rows} records"
        seat.announce(meaning, part.size)
        return self.opened(seat, part + summand(seat, second, part.shape), bits, meaning)

    @staticmethod
    def opened(seat: Seat, whole: Words, bits: int, meaning: str) -> Outcome:
        """Note in the transcript what was opened, and return it in the units of the columns."""
        found = np.asarray(whole).view(np.int64)
        seat.wire.transcript.open(meaning, found.tobytes(), cells=int(found.size))
        units = np.outer(*(np.array(seat.cast.bounds[owner]) for owner in seat.cast.owners))
        return Outcome({"product": found / 4.0**bits * units})

    def plain(self, inputs: Inputs) -> Mapping[str, npt.NDArray[np.float64]]:
        """Return X'Y."""
        x, y = inputs.values()
        return {"product": x.T @ y}

    def leakage(self) -> Leakage:
        """Return what each party learns."""
        return Leakage.of(
            ("first owner", "the sums of products; the other's columns under a mask used once",
             "of each column of the other, as many sums as it has columns itself"),
            ("second owner", "the first owner's columns under a mask used once", "nothing"),
            ("dealer", "the number of records", "nothing"),
            ("analyst", "the sums of products", "what they say"),
            assumes=(FOLLOW, "the dealer puts its masks together with nobody",
                     "an owner that chooses its columns as it likes (one person each) reads the "
                     "other's: columns are those that were agreed on"),
        )  # fmt: skip
