"""What every table method does: a table with its sensitive cells in, a protected one out.

A method sees one table. Linked tables are joined into one before it is called (`data.linked`),
so a method that works with `table.equations` protects them together without knowing it.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.audit.knowledge import least
from discreet.audit.rules import Rule
from discreet.audit.rules._base import magnitude
from discreet.audit.rules.minimum_frequency import MinimumFrequency
from discreet.audit.sensitivity import mark
from discreet.data.table import Bools, Floats, Status, Table
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import Member
from discreet.tables.methods._tree_estimate import TreeEstimate

__all__ = ["Protected", "TableMethod"]


@dataclasses.dataclass(frozen=True, eq=False)
class Protected:
    """What a method made of a table: one entry per cell, in the table's order.

    `table` is the true table in the shape that is published: the one given, or a coarser one
    after recoding. It stays in the house.
    """

    table: Table
    #: What is published; NaN where the value is withheld.
    value: Floats
    #: Of `Status`: safe, secondary, primary, changed.
    status: npt.NDArray[np.int8]
    #: What the method itself gives away of each cell besides the equations: a cell published as
    #: it is lies in [value, value], a cell rounded to base b within b of the printed number. None:
    #: exact where published, and only what everybody knows (`table` has a sign) where withheld.
    lower: Floats | None = None
    upper: Floats | None = None
    #: Whether `lower` and `upper` are printed in place of the values.
    prints_intervals: bool = False
    #: Published sums are multiples of it; means of them are printed as multiples, too, since their
    #: other digits would tell how many stand behind them.
    grid: float | None = None
    #: How wide an interval each cell keeps whatever was drawn, to somebody who knows which way its
    #: largest contributor went.
    spread: Floats | None = None
    #: What may be told about how it was done (iterations, optimality gap); goes into the evidence.
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    #: What only the curator may see.
    confidential: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    #: Of counts over a tree of places: what is published with intervals for cells and sums of them.
    estimate: TreeEstimate | None = None

    #: The privacy events of noise with differential privacy.
    events: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def withheld(self) -> npt.NDArray[np.bool_]:
        """Which cells are not published."""
        return np.isnan(self.value)


@dataclasses.dataclass(frozen=True)
class TableMethod(Member):
    """A way to protect the sensitive cells of a table.

    Contract, tested for every member: the input is not changed; sensitive cells are those with
    `table.status == Status.PRIMARY`, with protection levels `table.lower` and `table.upper` (never
    None when `hide` is called); cells with the status SECONDARY in the input are preferred for
    suppression; the result has an entry for every cell of its table.
    """

    #: How the release is judged: "intervals" (feasibility intervals against protection levels, by
    #: the auditor), "distance" (how far sensitive cells were moved), "spread" (what noise leaves
    #: unknown whatever is drawn) or "noise" (its distribution).
    risk: ClassVar[str] = "intervals"
    #: Whether only sensitive cells are protected, so that without a rule nothing would be.
    needs_rules: ClassVar[bool] = True
    #: Whether the result depends on a random draw.
    is_random: ClassVar[bool] = False
    #: Whether published totals are the sums of the published parts.
    is_additive: ClassVar[bool] = True
    #: What is done with linked tables: "joined" into one; "apart", for methods by which a cell
    #: comes out the same in whatever table it stands; "refused".
    linked: ClassVar[str] = "joined"
    #: Whether count, sum and mean of the same records can be protected together.
    across_measures: ClassVar[bool] = False

    @property
    def acting(self) -> TableMethod:
        """The method that does the hiding in the end, by which the result is judged."""
        return self

    def settings(self) -> dict[str, Any]:
        """Return the parameters; of a secret key only whether one is kept."""
        shown = super().settings()
        if shown.get("key") is not None:
            shown["key"] = "kept secret"
        return shown

    def events(self, table: Table) -> Mapping[str, int]:
        """Return the privacy events that `hide` will spend on a table, for the accountant.

        Overridden by methods with differential privacy. What can be refused without looking at a
        record is refused here, before anything is charged; what the records themselves forbid is
        refused by `hide`, after it: a refusal that is free can be asked for again and again.
        """
        del table
        return {}

    def prepare(self, table: Table, rules: Sequence[Rule]) -> Table:
        """Return the table with its sensitive cells marked: what `hide` is then given.

        Overridden by methods that change the shape of the table and must ask the rules again.
        """
        return self.mark(table, rules)

    def mark(self, table: Table, rules: Sequence[Rule]) -> Table:
        """Return the table with its sensitive cells and protection levels marked.

        Overridden by methods that need other levels.
        """
        return alike(mark(table, rules), rules)

    def kept(self, table: Table) -> Bools | None:
        """Return which cells keep their levels whatever is drawn; None: the intervals decide.

        Overridden by methods of which a draw can leave less than another: a verdict is a property
        of the method and of what is known of it, not of the draw.
        """
        del table
        return None

    @abc.abstractmethod
    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return what may be published of a table whose sensitive cells are marked."""


def sensitive(table: Table) -> npt.NDArray[np.bool_]:
    """Return which cells are sensitive."""
    if table.status is None:
        return np.zeros(len(table), dtype=bool)
    return np.asarray(table.status == Status.PRIMARY)


def kept_cells(table: Table) -> npt.NDArray[np.bool_]:
    """Return which cells stay published as they are."""
    return np.zeros(len(table), dtype=bool) if table.never is None else table.never


def grand_total(table: Table) -> npt.NDArray[np.bool_]:
    """Return the grand total of a table of counts, which stays published.

    Withheld with one other cell it would say that this one is sensitive, so that few counts are
    left for it.
    """
    top = (table.codes == 0).all(axis=1)
    if table.status is not None:
        top &= table.status != Status.PRIMARY
    return top if table.is_whole else np.zeros(len(table), dtype=bool)


def alike(marked: Table, rules: Sequence[Rule], *, lowest: float = 1.0) -> Table:
    """Return levels with which small counts come out alike.

    Where levels depend on the value, what is published of a count depends on it, too. So of every
    count below the minimum frequency n all from the lowest to n must remain possible.
    """
    n = max((rule.n for rule in rules if isinstance(rule, MinimumFrequency)), default=0)
    if not marked.is_whole:
        return marked
    assert marked.lower is not None
    assert marked.upper is not None
    small = sensitive(marked) & (marked.value > 0) & (marked.value < n)
    return marked.replace(
        lower=np.where(small, np.maximum(marked.lower, marked.value - lowest), marked.lower),
        upper=np.where(small, np.maximum(marked.upper, n - marked.value), marked.upper),
    )


def with_levels(table: Table, name: str) -> Table:
    """Return the table with a protection level for every sensitive cell.

    Statuses may come without levels. Of a count another one must remain possible; of a zero, whose
    level is no part of it, a tenth of the middle value; of other magnitudes nobody can guess.
    """
    assert table.lower is not None
    assert table.upper is not None
    none = sensitive(table) & (table.lower <= 0) & (table.upper <= 0)
    if not none.any():
        return table
    size = np.abs(table.value)
    if table.statistic == "count":
        level = np.ones(len(table))
    else:
        unknown = np.flatnonzero(none & (size > 0))
        if unknown.size:
            names = [" × ".join(table.labels(int(cell))) for cell in unknown[:5]]
            raise InputError(
                f"{unknown.size} sensitive cells have no protection level, which {name} needs, "
                "such as " + "; ".join(names),
                code="missing-levels",
                hint="give the columns lower= and upper=, or a rule",
                cells=names,
            )
        level = np.full(len(table), 0.1 * float(np.median(size[size > 0])) if size.any() else 1.0)
    lower = np.where(none, np.minimum(level, size), table.lower)
    return table.replace(lower=lower, upper=np.where(none, level, table.upper))


def changed(table: Table) -> npt.NDArray[np.int8]:
    """Return the status of every cell of a table whose values were changed.

    All are told to be changed, also those that happen to be as they were: which ones those are
    would give their values away.
    """
    return np.full(len(table), np.int8(Status.CHANGED))


def is_whole(table: Table, *, strictly: bool = False) -> bool:
    """Return whether every value is a whole number: a table of counts, or of indivisible things.

    A table of counts is taken for one unasked, unless weights may have made fractions of it.
    """
    whole = bool((table.value == np.round(table.value)).all())
    return whole if strictly else whole or table.statistic == "count"


def floor_of(table: Table) -> float:
    """Return what everybody knows no value falls below: zero, unless there are negative ones."""
    known = table.value if table.least is None else table.least
    return -np.inf if (known < 0).any() else 0.0


def least_of(table: Table) -> Floats:
    """Return what everybody knows each value not to fall below.

    Where a table of counts has no cell of zero, empty cells are left out: whatever is printed in
    place of a cell that is there, it counts somebody.
    """
    if table.statistic == "count" and (table.value == 0).any():
        return np.zeros(len(table))
    return least(table, table.value)


def within_share(table: Table, value: Floats, most: float) -> tuple[Floats, Floats]:
    """Return between what the true values lie if each was changed by at most a share of itself.

    Where contributions of both signs meet, the share is one of their sizes, which nobody knows.
    """
    ends = np.stack([value / (1 + most), value / (1 - most)])
    known = table.contributions is not None or table.magnitude is not None
    if known or floor_of(table) == 0:
        mixed = magnitude(table) > np.abs(table.value) * (1 + 1e-9)
    else:
        mixed = np.ones(len(table), dtype=bool)
    return np.where(mixed, -np.inf, ends.min(axis=0)), np.where(mixed, np.inf, ends.max(axis=0))


def remaining_width(table: Table, least: float, most: float) -> Floats:
    """Return how wide an interval noise leaves for each cell whatever is drawn.

    The largest contribution is pushed one way by between two shares of itself, the others either
    way by up to the larger share; who sees the result can divide by no less than 1 + most.

    >>> import pandas as pd
    >>> cells = pd.DataFrame({"act": ["A"], "value": [120.0], "x1": [120.0]})
    >>> table = Table.from_cells(cells, by=["act"], value="value", contributions=["x1"])
    >>> remaining_width(table, 0.05, 0.20).round(6).tolist()
    [15.0]
    """
    size = magnitude(table)
    largest = size if table.contributions is None else np.abs(table.contributions[:, 0])
    others = np.maximum(size - largest, 0.0)
    return np.asarray((largest * (most - least) + others * 2 * most) / (1 + most))


def is_total(table: Table) -> npt.NDArray[np.bool_]:
    """Return which cells are the sum of others."""
    entries = table.equations.tocoo()
    total = np.zeros(len(table), dtype=bool)
    total[entries.col[entries.data > 0]] = True
    return total


def round_up(number: float) -> float:
    """Return the first of 1, 2, 5, 10, 20, 50 … (or 0.5, 0.2 …) that is at least a number.

    >>> round_up(37), round_up(50), round_up(0.3)
    (50.0, 50.0, 0.5)
    """
    if number <= 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(number))
    return float(
        next(power * step for step in (1, 2, 5, 10) if power * step >= number * (1 - 1e-12))
    )
