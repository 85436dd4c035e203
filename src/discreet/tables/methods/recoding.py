"""Recoding: merging categories."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from discreet.audit.rules import Rule
from discreet.audit.sensitivity import mark
from discreet.data.table import Table
from discreet.errors import InfeasibleError, InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter
from discreet.tables.methods._base import Protected, TableMethod, sensitive
from discreet.tables.methods._merging import candidates, codes_after, merge
from discreet.tables.tabulation import Tabulation, retabulate

__all__ = ["Recoding"]


@dataclasses.dataclass(frozen=True)
class Recoding(TableMethod):
    """Merges categories until few enough cells are sensitive, then protects the rest.

    Step by step the two categories below one total are merged that make most sensitive cells
    disappear for the detail they cost; where only two are left they give way to their total. Which
    merges were made is told, as a suggestion that can be written into the hierarchies.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.audit.rules.minimum_frequency import MinimumFrequency
    >>> cells = pd.DataFrame({"age": ["Total", "0-19", "20-64", "65+"], "n": [50, 2, 40, 8]})
    >>> table = Table.from_cells(cells, by=["age"], value="n", count="n", statistic="count")
    >>> method = Recoding()
    >>> recoded = method.prepare(table, [MinimumFrequency(3)])
    >>> [recoded.labels(cell)[0] for cell in range(len(recoded))]
    ['Total', '65+', '0-19 + 20-64']
    """

    name: ClassVar[str] = "recoding"
    reference: ClassVar[str] = "Hundepool et al. (2012), Statistical Disclosure Control, §4.3"

    percent: float = parameter(
        0.0, help="percent of the cells that may remain sensitive", low=0, high=100
    )
    then: TableMethod | None = parameter(
        None, help="the method that protects the cells that remain sensitive"
    )
    keep: tuple[str, ...] = parameter((), help="attributes whose categories are not merged")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.then is not None and self.then.acting.risk == "noise":
            raise InputError(
                f"recoding: which categories are merged depends on the records, so that "
                f"{self.then.name} afterwards cannot keep its promise",
                code="recoding-then",
                hint="merge categories by what is publicly known, in a hierarchy",
                parameter="then",
            )

    @property
    def acting(self) -> TableMethod:
        """The method that protects what remains sensitive."""
        return self if self.then is None else self.then.acting

    def mark(self, table: Table, rules: Sequence[Rule]) -> Table:
        """Return the table with the levels that the method afterwards needs."""
        return mark(table, rules) if self.then is None else self.then.mark(table, rules)

    def prepare(self, table: Table, rules: Sequence[Rule]) -> Table:
        """Return the recoded table, its sensitive cells marked anew."""
        unknown = [name for name in self.keep if name not in table.by]
        if unknown:
            raise InputError(
                f"recoding: the table has no attribute {unknown[0]!r}",
                code="unknown-column",
                hint="choose one of " + ", ".join(table.by),
                parameter="keep",
            )
        current = self.mark(table, rules)
        if not rules and sensitive(current).any():
            raise InputError(
                "recoding asks the rules again after every merge, and none is given",
                code="recoding-without-rules",
                hint="give rules=[…]; statuses that come with a table cannot be merged",
            )
        several = _several(table)
        if (
            several
            and not self._is_enough(current)
            and set(several) | set(self.keep) >= {*table.by}
        ):
            raise InputError(
                f"recoding does not merge codes that stand in several hierarchies, as those of "
                f"{', '.join(several)} do, and no other attribute may be merged",
                code="recoding-several-hierarchies",
                hint="tabulate with one of the hierarchies, or protect by suppression",
                column=several[0],
            )
        while True:
            merged = self._merge(current, rules)
            if not isinstance(table, Tabulation) or merged is current:
                return merged
            # Contributors of several merged cells count once, which only the records tell.
            codes = {
                old.name: codes_after(old, new)
                for old, new in zip(table.dimensions, merged.dimensions, strict=True)
                if old.codes != new.codes
            }
            exact = self.mark(retabulate(table, merged.dimensions, codes), rules)
            if len(exact) == len(current) or self._is_enough(exact):
                return exact
            current = exact

    def _is_enough(self, table: Table) -> bool:
        return int(sensitive(table).sum()) <= self.percent / 100 * len(table)

    def _merge(self, table: Table, rules: Sequence[Rule]) -> Table:
        while not self._is_enough(table):
            best = self._best(table, rules)
            if best is None:
                break
            table = best
        return table

    def _best(self, table: Table, rules: Sequence[Rule]) -> Table | None:
        """Return the table after the merge that pays most; none where nothing can be merged."""
        before = int(sensitive(table).sum())
        best, gain = None, -np.inf
        for step in candidates(table, self.keep):
            tried = self.mark(merge(table, step), rules)
            gone = before - int(sensitive(tried).sum())
            worth = gone / max(1, len(table) - len(tried))
            if worth > gain:
                best, gain = tried, worth
        return best

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return the recoded table, what remains sensitive protected by the next method."""
        merged = {
            dimension.name: [code for code in dimension.codes if " + " in code]
            for dimension in table.dimensions
        }
        facts = {"merged": {name: codes for name, codes in merged.items() if codes}}
        left = np.flatnonzero(sensitive(table))
        if not left.size:
            return Protected(
                table, table.value.copy(), np.zeros(len(table), dtype=np.int8), facts=facts
            )
        if self.then is None:
            names = [" × ".join(table.labels(int(cell))) for cell in left[:5]]
            several = _several(table)
            untouched = (
                f" ({', '.join(several)}: several hierarchies, not merged)" if several else ""
            )
            raise InfeasibleError(
                f"{left.size} cells are still sensitive after merging{untouched}: "
                + "; ".join(names),
                code="recoding-not-enough",
                hint="name a method for them with then=, such as suppression",
                cells=names,
            )
        protected = self.then.hide(table, rng=rng, progress=progress)
        return dataclasses.replace(protected, facts={**protected.facts, **facts})


def _several(table: Table) -> list[str]:
    """Return the attributes whose codes stand in several hierarchies."""
    return [dimension.name for dimension in table.dimensions if len(dimension.hierarchies) > 1]
