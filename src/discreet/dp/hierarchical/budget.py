"""From shares of a budget to noise: scales whose privacy losses never add up to more than granted."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from discreet.dp.accountant import gaussian_event, normal_event
from discreet.dp.noise import gaussian_loss
from discreet.errors import InputError

__all__ = ["CENSUS", "Budget", "Measure", "allocate", "level_shares"]

#: Shares of the 2020 redistricting data (persons): nation, state, county, tract, block group, block.
CENSUS = (104, 1440, 447, 687, 1256, 165)

Query = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Measure:
    """One query at one level, and the noise it gets."""

    level: int
    query: Query
    #: Standard deviation of the discrete Gaussian.
    scale: float
    #: The loss that OpenDP proves for it.
    rho: float


@dataclasses.dataclass(frozen=True)
class Budget:
    """All measurements of a release."""

    measures: tuple[Measure, ...]
    #: How many records of one unit they are made for.
    records: int = 1

    @functools.cached_property
    def rho(self) -> float:
        """The loss of all of them together, rounded up."""
        total = sum(Fraction(measure.rho) for measure in self.measures)
        found = float(total)
        return found if Fraction(found) >= total else math.nextafter(found, math.inf)

    def events(self) -> dict[str, int]:
        """Return the measurements as a ledger counts them."""
        found: dict[str, int] = {}
        for one in self.measures:
            # Several records may lie in several cells, where only the concentrated loss is known.
            is_one = self.records == 1
            name = normal_event(one.rho, one.scale) if is_one else gaussian_event(one.rho)
            found[name] = found.get(name, 0) + 1
        return found

    def variances(self, level: int) -> dict[Query, float]:
        """Return the variance of each query at a level."""
        return {one.query: one.scale**2 for one in self.measures if one.level == level}


def allocate(rho: float, shares: Sequence[Mapping[Query, float]], *, records: int = 1) -> Budget:
    """Return the measurements that a budget pays for.

    Parameters
    ----------
    shares
        Per level the share of each query; all of them add up to one. What has no share is not
        measured.

    Examples
    --------
    >>> budget = allocate(0.5, [{(): 0.5}, {(): 0.25, (0,): 0.25}])
    >>> budget.rho <= 0.5, [round(one.scale, 3) for one in budget.measures]
    (True, [1.414, 2.0, 2.0])
    """
    if not rho > 0 or not math.isfinite(rho):
        raise InputError(
            f"rho must be above 0, found {rho:g}", code="parameter-range", parameter="rho"
        )
    wanted = [
        (level, query, rho * share)
        for level, queries in enumerate(shares)
        for query, share in queries.items()
        if share > 0
    ]
    factor = 1.0
    for _ in range(200):
        measures = []
        for level, query, part in wanted:
            scale = factor * records / math.sqrt(2 * part)
            measures.append(Measure(level, query, scale, gaussian_loss(scale, float(records))))
        if sum(Fraction(one.rho) for one in measures) <= Fraction(rho):
            return Budget(tuple(measures), records)
        factor *= 1 + 2**-50
    raise InputError(
        "the shares add up to more than the budget", code="bad-shares", parameter="split"
    )


def level_shares(split: str | Mapping[int, float], levels: int) -> tuple[float, ...]:
    """Return the share of each level, from the root down.

    >>> level_shares("even", 4)
    (0.25, 0.25, 0.25, 0.25)
    >>> [round(share, 3) for share in level_shares("leaf-heavy", 4)]
    [0.1, 0.2, 0.3, 0.4]
    """
    if split == "even":
        return (1 / levels,) * levels
    if split == "leaf-heavy":
        total = levels * (levels + 1) / 2
        return tuple((level + 1) / total for level in range(levels))
    if split == "census":
        if levels != len(CENSUS):
            raise InputError(
                f"the census split is one of six levels, and the spine has {levels}",
                code="bad-shares",
                hint='write split="even", or a share for each level',
                parameter="split",
            )
        return tuple(share / sum(CENSUS) for share in CENSUS)
    assert not isinstance(split, str)
    return tuple(float(split.get(level, 0.0)) for level in range(levels))
