"""The base to which a table is rounded where none is given."""

from __future__ import annotations

import hashlib
import math

import numpy as np

from discreet.audit.sliding import needed_width
from discreet.data.table import Table
from discreet.tables.methods._base import is_whole, round_up, sensitive

__all__ = ["rounding_base"]

#: Larger bases are tried so often; no level needs as many.
_STEPS = 100


def rounding_base(table: Table, base: float | None, key: bytes, *, nearest: bool = False) -> float:
    """Return the base given, or a round number that fits the table.

    Counts are rounded to multiples of five. Magnitudes are rounded to one of 1, 2, 5, 10, 20 … so
    large that all values between two multiples (or nearest to one) together are as wide as the
    largest of them needs: which base is large enough does not depend on where between them a value
    lies. One time in four, drawn with the key, a larger one is taken than needed, so that a base
    does not tell that a smaller one was not enough.
    """
    if base is not None:
        return float(base)
    marked = sensitive(table)
    if table.is_whole or table.statistic == "count" or not marked.any():
        return 5.0
    whole, shift = is_whole(table, strictly=True), 0.5 if nearest else 0.0
    chosen = round_up(float(needed_width(table, np.abs(table.value))[marked].max(initial=0.0)))
    chosen = max(chosen, 1.0) if whole else chosen
    seed = hashlib.blake2b(key, digest_size=8, person=b"discreet base").digest()
    larger = -math.log((int.from_bytes(seed, "big") + 0.5) / 2.0**64) // math.log(4)
    for _ in range(int(larger)):
        chosen = round_up(1.5 * chosen)
    for _ in range(_STEPS):
        top = np.floor(np.abs(table.value) / chosen + shift) + 1 - shift
        if needed_width(table, top * chosen)[marked].max() <= chosen - whole:
            break
        chosen = round_up(1.5 * chosen)
    return chosen
