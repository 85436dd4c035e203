"""Finding the codes of totals in a published table, by arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["find_total", "is_total_word"]

Floats = npt.NDArray[np.float64]

#: Words for totals; one of them decides where several codes add up alike.
_WORDS = frozenset(
    [
        "total",
        "totals",
        "all",
        "sum",
        "overall",
        "together",
        "_t",
        "t",
        "insgesamt",
        "gesamt",
        "summe",
        "ensemble",
        "totale",
        "totaal",
        "suma",
        "totalt",
        "alle",
        "ukupno",
        "razem",
        "összesen",
        "ogółem",
        "celkem",
    ]
)
#: How far printed parts may miss a printed total, relative to what is added up.
_TOLERANCE = 1e-6


def find_total(
    codes: Sequence[str], others: Sequence[tuple[str, ...]], value: Floats, within: float = 0.0
) -> str | None:
    """Return the code whose cells are the sum of all others wherever all of them are printed.

    Parameters
    ----------
    codes
        The code of the attribute for each cell.
    others
        The codes of all other attributes for each cell: cells that share them are one line.
    value
        What is printed, not a number where a value is withheld.
    within
        How far a printed value may lie from the true one.

    Examples
    --------
    >>> lines = [("N",), ("N",), ("N",), ("S",), ("S",), ("S",)]
    >>> printed = np.array([3.0, 4.0, 7.0, np.nan, np.nan, 9.0])
    >>> find_total(["f", "m", "everybody"] * 2, lines, printed)
    'everybody'
    """
    lines: dict[tuple[str, ...], dict[str, float]] = {}
    for code, line, number in zip(codes, others, value.tolist(), strict=True):
        lines.setdefault(line, {})[code] = number
    distinct = list(dict.fromkeys(codes))
    has_negative = bool((value < 0).any())
    proofs = {
        code: proof
        for code in distinct
        if (proof := _proofs(code, lines.values(), within, has_negative)) is not None
    }
    added = {code: proof for code, proof in proofs.items() if proof}
    if added:
        most = max(added.values())
        best = [code for code, proof in added.items() if proof == most]
        return best[0] if len(best) == 1 else _named(best)
    return None


def _named(codes: Sequence[str]) -> str | None:
    """Return the only code that is a word for totals."""
    found = list(filter(is_total_word, codes))
    return found[0] if len(found) == 1 else None


def is_total_word(code: str) -> bool:
    """Whether a code is a word for totals.

    >>> is_total_word("Insgesamt")
    True
    """
    return code.strip().lower() in _WORDS


def _proofs(
    code: str,
    lines: Iterable[Mapping[str, float]],
    within: float,
    has_negative: bool,
) -> int | None:
    """Return in how many lines a code is the sum of the others; none where it cannot be."""
    found = 0
    for line in lines:
        total = line.get(code, np.nan)
        parts = [number for other, number in line.items() if other != code]
        if np.isnan(total) or not parts:
            continue
        known = [number for number in parts if not np.isnan(number)]
        slack = _TOLERANCE * (abs(total) + sum(map(abs, known))) + within * (len(parts) + 1)
        gap = total - sum(known)
        if len(known) == len(parts):
            if abs(gap) > slack:
                return None
            # A single part equals its total, and so tells not which of them is the total.
            found += len(parts) > 1 and total != 0
        elif not has_negative and gap < -slack:
            return None
    return found
