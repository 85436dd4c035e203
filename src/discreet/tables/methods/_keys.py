"""Keys of records and cells: secret numbers that stay the same wherever a record is counted."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.data.keys import read_key_file
from discreet.data.table import Floats, Table
from discreet.randomness import Randomness
from discreet.tables.suppression.ties import drawn

if TYPE_CHECKING:
    from discreet.tables.tabulation import Source

__all__ = ["cell_keys", "draws", "read_key", "record_words", "rehash", "with_amounts"]

Words = npt.NDArray[np.uint64]
#: Bits of each part of a key; sums of so few bits stay exact over 2**31 records.
_PARTS = ((0, 22), (22, 21), (43, 21))


def read_key(file: str | None, rng: Randomness) -> bytes:
    """Return the secret in a file, or one drawn for this run only."""
    if file is None:
        return rng.bytes(32)
    return read_key_file(file)


def record_words(identities: Iterable[str], key: bytes, purpose: bytes) -> Words:
    """Return a secret 64-bit number for each record, the same for the same identity."""
    hashed = b"".join(
        hashlib.blake2b(text.encode(), digest_size=8, key=key, person=purpose).digest()
        for text in identities
    )
    return np.frombuffer(hashed, dtype="<u8").astype(np.uint64)


def with_amounts(identities: list[str], amounts: Floats) -> list[str]:
    """Return each identity with what its records add up to, in whatever order they stand.

    Noise made from it is drawn anew when the amount changes: the same factor in two years would
    tell the exact growth.
    """
    given = defaultdict(list)
    for identity, amount in zip(identities, amounts.tolist(), strict=True):
        given[identity].append(amount)
    total = {identity: math.fsum(parts) for identity, parts in given.items()}
    return [f"{identity}\x1e{total[identity]!r}" for identity in identities]


def cell_keys(table: Table, key: bytes) -> Words:
    """Return the key of each cell: the sum of its records' keys modulo 2**64.

    In a table of sums or means a record's key depends on what its contributor gives.

    A table without records behind it has keys made from what the cell is (its codes other than
    totals) and holds, so that it is the same in every table in which it stands.
    """
    source: Source | None = getattr(table, "source", None)
    if source is None:
        return record_words(_cell_identities(table), key, b"discreet cell")
    identities = source.identities()
    if table.statistic != "count" and source.measure is not None:
        identities = with_amounts(identities, source.numbers(source.measure))
    words = record_words(identities, key, b"discreet record")
    parts = {
        f"__key{place}": ((words >> np.uint64(shift)) & np.uint64((1 << bits) - 1)).astype(
            np.float64
        )
        for place, (shift, bits) in enumerate(_PARTS)
    }
    sums = source.sums(table, parts, weighted=False)
    keys = np.zeros(len(table), dtype=np.uint64)
    for (shift, _), total in zip(_PARTS, sums, strict=True):
        keys += total.astype(np.uint64) << np.uint64(shift)
    return keys


def draws(table: Table, key: bytes, purpose: bytes, *, of: str = "values") -> Floats:
    """Return a secret number in (0, 1) for each cell, the same for the same cell and key.

    Of "values" it depends on what the cell is and holds: next year it is drawn anew, so that the
    difference of two releases is not that of the values. Of "codes" it depends on what the cell
    is: then a choice made with it tells no value.
    """
    if of == "codes":
        return drawn(table, key, purpose)
    return unit_interval(record_words(_cell_identities(table), key, purpose))


def rehash(keys: Words, key: bytes, purpose: str) -> Words:
    """Return keys for another use, independent of the first."""
    return record_words((str(int(word)) + purpose for word in keys), key, b"discreet again")


def unit_interval(keys: Words) -> Floats:
    """Return the keys as numbers in the open interval (0, 1)."""
    return np.asarray(((keys >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)


def _cell_identities(table: Table) -> Iterable[str]:
    roots = [dimension.total for dimension in table.dimensions]
    counts = table.value if table.count is None else table.count
    for cell, (value, count) in enumerate(zip(table.value, counts, strict=True)):
        codes = [
            f"{name}={code}"
            for name, code, root in zip(table.by, table.labels(cell), roots, strict=True)
            if code != root
        ]
        yield "\x1f".join([*sorted(codes), repr(float(value)), repr(float(count))])
