"""Products of columns of two owners where no third party exists."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import RefusedError
from discreet.protocols.joint.learned import FOLLOW, Leakage
from discreet.protocols.joint.methods._paillier import KEY_BITS, PaillierKey, PublicKey, new_key
from discreet.protocols.joint.methods.matrix_product import MatrixProduct, same_records
from discreet.protocols.joint.protocol import Outcome, Seat
from discreet.protocols.joint.seat import fraction_bits

__all__ = ["PaillierProduct"]

#: Binary digits of one sum of products among several in one plaintext: 63 and room for borrowing.
_SLOT = 66
_PER_TEXT = (KEY_BITS - 2) // _SLOT
#: Records encrypted between two messages, so that the other party does not wait beyond its time limit.
_BATCH = 64
_BYTES = KEY_BITS // 4  # of an encrypted number, below the square of n


@dataclasses.dataclass(frozen=True)
class PaillierProduct(MatrixProduct):
    """Multiply the columns of two owners without a third party, under Paillier's encryption.

    The first owner encrypts its records, up to 46 columns in one number; the second raises them
    to its own values, multiplies, encrypts anew and returns one number for each of its columns. About
    8 milliseconds for each record with the extra `paillier` (gmpy2), many more without: use matrix-product
    where a dealer can be found.

    Examples
    --------
    >>> from discreet.protocols.joint.rehearsal import rehearse_protocol
    >>> x, y = np.array([[1.0, -2.0], [3.0, 4.0]]), np.array([[1.0], [0.5]])
    >>> found = rehearse_protocol(PaillierProduct(), {"a": x, "b": y})
    >>> found.shown["product"].round(6).tolist()
    [[2.5], [0.0]]
    """

    name: ClassVar[str] = "paillier-product"
    reference: ClassVar[str] = (
        "Paillier (1999), EUROCRYPT; Goethals, Laur, Lipmaa and Mielikäinen (2004), ICISC"
    )
    costly: ClassVar[bool] = True

    @property
    def needs_dealer(self) -> bool:
        """The owners are alone."""
        return False

    def play(self, seat: Seat) -> Outcome:
        """Return the product, at the first owner."""
        first, second = seat.cast.owners
        rows = same_records(seat, first, second)
        bits = fraction_bits(rows)
        whole = seat.whole(bits)
        if seat.name == second:
            self._answer(seat, first, whole)
            return Outcome()
        key = new_key()
        width = whole.shape[1]
        places = [slice(start, start + _PER_TEXT) for start in range(0, width, _PER_TEXT)]
        seat.wire.send(second, "key", key.public.n.to_bytes(_BYTES // 2, "big"))
        for place in places:
            for start in range(0, rows, _BATCH):
                batch = whole[start : start + _BATCH, place]
                texts = [key.encrypt(_packed(row), seat.rng) for row in batch]
                seat.wire.send(second, "encrypted columns", _joined(texts))
        columns = len(seat.cast.bounds[second])
        meaning = f"sums of {width * columns} products over {rows} records"
        seat.announce(meaning, width * columns)
        parts = [self._decrypted(seat, key, second, columns, whole[:, place]) for place in places]
        return self.opened(seat, np.concatenate(parts), bits, meaning)

    @staticmethod
    def _answer(seat: Seat, first: str, whole: npt.NDArray[np.int64]) -> None:
        n = int.from_bytes(seat.wire.receive(first, "key", size=_BYTES // 2), "big")
        if n.bit_length() != KEY_BITS:
            raise RefusedError("a key of another length was due", code="message-unexpected")
        public = PublicKey(n)
        for _ in range(0, len(seat.cast.bounds[first]), _PER_TEXT):
            parts: list[list[tuple[int, int]]] = [[(1, 1)] for _ in whole.T]
            for start in range(0, len(whole), _BATCH):
                batch = whole[start : start + _BATCH]
                body = seat.wire.receive(first, "encrypted columns", size=_BYTES * len(batch))
                texts = _numbers(body, public.square)
                for found, weights in zip(parts, batch.T, strict=True):
                    found.append(public.weighted(texts, weights.tolist()))
            sums = [public.total(found, seat.rng) for found in parts]
            seat.wire.send(first, "opened", _joined(sums))

    @staticmethod
    def _decrypted(
        seat: Seat, key: PaillierKey, second: str, columns: int, mine: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.uint64]:
        """Return this owner's columns times each of the other's, modulo 2^64."""
        body = seat.wire.receive(second, "opened", size=_BYTES * columns)
        texts = _numbers(body, key.public.square)
        found = [_unpacked(key.decrypt(text), mine.shape[1]) for text in texts]
        return np.array(found, dtype=np.int64).reshape(columns, -1).T.astype(np.uint64)

    def leakage(self) -> Leakage:
        """Return what each party learns."""
        return Leakage.of(
            ("first owner", "the sums of products",
             "of each column of the other, as many sums as it has columns itself"),
            ("second owner", "the first owner's columns, encrypted", "nothing"),
            ("analyst", "the sums of products", "what they say"),
            assumes=(FOLLOW, "nobody tells nth powers modulo n² from other numbers (Paillier's "
                     f"assumption) for n of {KEY_BITS} bits",
                     "an owner that chooses its columns as it likes (one person each) reads the "
                     "other's: columns are those that were agreed on"),
        )  # fmt: skip


def _packed(row: npt.NDArray[np.int64]) -> int:
    """Return numbers side by side in one; sums of multiples keep to their places."""
    return sum(value << _SLOT * place for place, value in enumerate(row.tolist()))


def _unpacked(text: int, size: int) -> list[int]:
    """Return the numbers again; a negative one borrowed from the place above it.

    >>> _unpacked(_packed(np.array([5, -7, 2**61])), 3) == [5, -7, 2**61]
    True
    """
    found, half = [], 1 << (_SLOT - 1)
    for _ in range(size):
        value = (text + half) % (2 * half) - half
        if not -(1 << 63) <= value < 1 << 63:
            raise RefusedError("a sum beyond what was agreed arrived", code="message-malformed")
        found.append(value)
        text = (text - value) >> _SLOT
    return found


def _joined(texts: list[int]) -> bytes:
    return b"".join(text.to_bytes(_BYTES, "big") for text in texts)


def _numbers(body: bytes | bytearray, square: int) -> list[int]:
    """Return encrypted numbers; refuse what cannot be any."""
    found = [
        int.from_bytes(body[start : start + _BYTES], "big") for start in range(0, len(body), _BYTES)
    ]
    if not all(0 < one < square for one in found):
        raise RefusedError("a number beyond the modulus arrived", code="message-malformed")
    return found
