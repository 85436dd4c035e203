"""Pre-tabular multiplicative noise."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.data.table import Floats, Table
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter
from discreet.tables.methods._base import (
    Protected,
    TableMethod,
    changed,
    remaining_width,
    within_share,
)
from discreet.tables.methods._keys import read_key, record_words, unit_interval, with_amounts

__all__ = ["RecordNoise"]


@dataclasses.dataclass(frozen=True)
class RecordNoise(TableMethod):
    """Multiplies every contributor's values by a factor near one before adding up.

    Each contributor is pushed up or down by between `least` and `most` percent, all of its records
    the same way. A cell with one contributor moves by at least `least` percent; in cells with
    many, pushes cancel out. Totals add up, since the table is made from the changed records. With
    one key every measure has factors of its own: where staff numbers are public, their factor
    would otherwise give the turnover away. A contributor whose amount has changed since has another
    factor, too: the ratio of two years would otherwise be its exact growth. Over many years in which
    an amount hardly changes, the noise averages out.

    The verdict does not depend on what was drawn: a sensitive cell is safe where, even to somebody
    who knows which way its largest contributor was pushed, an interval as wide as a protection
    level is left. With one contributor that is the case where `most` − `least` is at least the
    level in percent, times 1 + `most`.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> from discreet.tables.table import tabulate
    >>> people = read(pd.DataFrame({"sector": ["IT", "IT", "Fin"], "salary": [10.0, 20.0, 30.0]}))
    >>> table = tabulate(people, by=["sector"], measure="salary")
    >>> noisy = RecordNoise(least=5, most=15).hide(table, rng=Randomness.seeded(1)).value
    >>> fin = table.cell("Fin")
    >>> bool(0.05 <= abs(noisy[fin] / 30 - 1) <= 0.15)
    True
    """

    name: ClassVar[str] = "record-noise"
    reference: ClassVar[str] = "Evans, Zayatz and Slanta (1998), Journal of Official Statistics 14"
    needs_rules: ClassVar[bool] = False
    is_random: ClassVar[bool] = True
    risk: ClassVar[str] = "spread"
    linked: ClassVar[str] = "apart"

    least: float = parameter(5.0, help="smallest push in percent", low=0, below=100)
    most: float = parameter(20.0, help="largest push in percent", above=0, below=100)
    key: str | None = parameter(
        None,
        help="file with the secret key, for the same noise in every table and run",
        file="secret",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least > self.most:
            raise InputError(
                f"record-noise: least must not be above most, found {self.least:g} and "
                f"{self.most:g}",
                code="parameter-range",
                parameter="least",
            )

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return the table of the changed records."""
        source = getattr(table, "source", None)
        if source is None or table.measure is None:
            raise InputError(
                "record-noise changes records before adding up, which needs the records and a "
                "measure",
                code="table-without-records",
                hint="tabulate records with measure=…, or use cell-key",
            )
        amounts = source.numbers(table.measure)
        whose = with_amounts(source.identities(), amounts)
        factors = self._factors(whose, table.measure, read_key(self.key, rng))
        progress("adding up", 0, 1)
        noisy = amounts * factors
        (value,) = source.sums(table, {"__noisy": noisy})
        progress("adding up", 1, 1)
        lower, upper = within_share(table, value, self.most / 100)
        spread = remaining_width(table, self.least / 100, self.most / 100)
        return Protected(table, value, changed(table), lower, upper, spread=spread)

    def _factors(self, whose: list[str], measure: str, key: bytes) -> Floats:
        named = (f"{measure}\x1e{identity}" for identity in whose)
        words = record_words(named, key, b"discreet factor")
        up = np.where(words & np.uint64(1), 1.0, -1.0)
        # A triangle that falls from `least` to `most`: large pushes are rare.
        share = 1 - np.sqrt(1 - unit_interval(words))
        return np.asarray(1 + up * (self.least + (self.most - self.least) * share) / 100)
