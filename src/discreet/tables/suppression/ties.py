"""Keyed prices: which of several equally good patterns is chosen depends on a secret.

Whoever has this program can run it on every table that agrees with a publication. A search without
a secret would exclude all tables for which it withholds other cells, and with them values that no
equation excludes. So prices carry noise made from a key and the codes of each cell. Values within a
protection level of each other change places often, and no choice among cells is a proof of values.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from discreet.data.table import Table

__all__ = ["HALF", "drawn", "tie_breaks"]

Floats = npt.NDArray[np.float64]

#: All tie-breaks of a table together stay below this, so that the number of cells comes first.
HALF = 0.5


def drawn(table: Table, key: bytes, purpose: bytes = b"suppression") -> Floats:
    """Return a number in (0, 1) for each cell, the same for the same key, purpose and codes.

    >>> import pandas as pd
    >>> cells = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "value": [10, 7, 3]})
    >>> table = Table.from_cells(cells, by=["sector"], value="value")
    >>> one, two = drawn(table, b"one"), drawn(table.replace(value=table.value * 2), b"one")
    >>> bool((one == two).all()), bool((one == drawn(table, b"two")).any())
    (True, False)
    """
    names = [name.encode() for name in table.by]
    words = [[code.encode() for code in dimension.codes] for dimension in table.dimensions]
    secret = hashlib.blake2b(key, digest_size=32, person=purpose).digest()
    digests = []
    for codes in table.codes.tolist():
        # Codes at the total are left out, so that a cell is the same in every table.
        parts = sorted(
            name + b"\x1f" + of[code]
            for name, of, code in zip(names, words, codes, strict=True)
            if code
        )
        digests.append(hashlib.blake2b(b"\x1e".join(parts), digest_size=8, key=secret).digest())
    bits = np.frombuffer(b"".join(digests), dtype="<u8") >> np.uint64(12)
    return np.asarray((bits.astype(np.float64) + 0.5) * 2.0**-52)


def tie_breaks(table: Table, draws: Floats) -> Floats:
    """Return what is added to prices of one: fewer totals are withheld first, then chance decides."""
    inner = np.zeros(len(table))
    for place, dimension in enumerate(table.dimensions):
        inner += ~dimension.is_leaf[table.codes[:, place]]
    most = len(table.dimensions) + 1
    return np.asarray((inner + draws) * HALF / (most * max(len(table), 1)))
