"""What a table with noise promises, in words: written by its producer, written again by an auditor."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["concentrated", "verdict_of"]


def concentrated(
    rho: float,
    epsilon: float,
    delta: float,
    *,
    records: int = 1,
    exact: Mapping[str, str] | None = None,
) -> str:
    """Return the promise of measurements with Gaussian noise, and what lies outside it: levels and their marginals."""
    who = "each record" if records == 1 else f"each contributor of {records} records"
    promise = (
        f"ρ-zero-concentrated differential privacy with ρ = {rho:g} for {who}, which is "
        f"(ε, δ)-differential privacy with ε = {epsilon:.2f} at δ = {delta:g}"
    )
    if not exact:
        return promise
    named = " and ".join(
        f"the {'totals' if query == 'total' else f'counts by {query}'} of level {level}"
        for level, query in exact.items()
    )
    return f"{promise}, up to {named}, which are published exactly and lie outside the promise"


def verdict_of(promise: str, caution: str = "") -> str:
    """Return the verdict that a promise amounts to, and the caution that belongs to it."""
    said = f"safe by promise: {promise}, whatever anybody else knows"
    return f"{said}; {caution}" if caution else said
