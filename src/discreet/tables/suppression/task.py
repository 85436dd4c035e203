"""What a suppression has to do: cells with their prices, and the demands of the sensitive ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.contributors.prior import Prior
from discreet.audit.knowledge import ATTACKERS, Bounds, Contributors, a_priori, needs
from discreet.audit.outsider.deviations import independent
from discreet.data.table import Status, Table
from discreet.errors import InputError, nearest
from discreet.tables.suppression.ties import drawn, tie_breaks

__all__ = ["OBJECTIVES", "SCALE", "Scale", "Task"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

OBJECTIVES = ("count", "value", "log-value", "cost")
#: How much cheaper a cell becomes that its owner prefers to see withheld.
_PREFERRED = 0.01


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scale:
    """How large a table may be for each way of searching, and how long proofs may take."""

    #: Live cells up to which the whole table is one window.
    whole: int = 10_000
    #: Live cells beyond which only the nearest window is looked at.
    large: int = 30_000
    #: Live cells up to which every effort seeks the optimum, since that is quick.
    tiny: int = 100
    #: What "fast" and "balanced" may cost, in pivots times cells of their program: some seconds, and
    #: some twenty, of one core; twice that where contributors attack.
    cost: tuple[float, float] = (1.5e8, 5e8)
    #: Pivots that "balanced" spends on a proof, and how many more per secondary.
    proof: int = 5_000
    proof_per_secondary: int = 400


SCALE = Scale()


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """Equations, room to move, prices and demands, as arrays over the cells of the table.

    Demand d asks that cell `target[d]` can move by `amount[d]` (negative: down).
    """

    table: Table
    equations: sparse.csc_matrix
    value: Floats
    down: Floats
    up: Floats
    #: Cells that are withheld in any case: the sensitive ones, and others that are given.
    primary: Bools
    #: Cells that may move at all: withheld or withholdable.
    live: Bools
    #: What withholding a cell costs, in the chosen objective; with a key, plus noise made from it.
    price: Floats
    #: Sizes by which price lists prefer small cells; with a key, plus noise made from it.
    size: Floats
    target: Ints
    amount: Floats
    knowledge: Contributors | None
    prior: Prior | None
    #: The median amount, as the unit of amounts.
    unit: float
    #: What everybody knows of the values, where other than that they are not negative.
    bounds: Bounds | None = None
    scale: Scale = SCALE
    #: Whether prices are one each and differ only by tie-breaks, which together stay below a half.
    tied: bool = False

    @property
    def attacker(self) -> str:
        """Against whom the table is protected."""
        return "outsider" if self.knowledge is None else "contributors"

    @classmethod
    def of(
        cls,
        table: Table,
        *,
        objective: str = "count",
        attacker: str = "contributors",
        never: Iterable[int] | Bools = (),
        prefer: Iterable[int] | Bools = (),
        withheld: Iterable[int] | Bools = (),
        bounds: Bounds | None = None,
        scale: Scale = SCALE,
        key: bytes | None = None,
    ) -> Task:
        """Read the task from a table whose sensitive cells have status primary."""
        _require_choice("objective", objective, OBJECTIVES)
        _require_choice("attacker", attacker, ATTACKERS)
        if table.status is None:
            raise InputError(
                "no cell of the table is marked as sensitive",
                code="status-missing",
                hint="apply rules first, or give the column with primary=…",
            )
        table.require_additive()
        value = table.value
        down, up = a_priori(table, value, bounds)
        sensitive = np.asarray(table.status == Status.PRIMARY)
        barred, wished = _mask(table, never), _mask(table, prefer)
        both = np.flatnonzero(sensitive & barred)
        if both.size:
            raise InputError(
                f"{both.size} sensitive cells are also marked never to be withheld, such as "
                + " × ".join(table.labels(int(both[0]))),
                code="never-primary",
                hint="take them off one of the two lists",
            )
        counted = value != 0 if table.count is None else (value != 0) | (table.count > 0)
        primary = sensitive | (_mask(table, withheld) & counted)
        live = primary | (counted & ~barred)
        lower, upper = needs(table, value, (down, up))
        cells = np.flatnonzero(sensitive)
        target = np.repeat(cells, 2)
        amount = np.stack([upper[cells], -lower[cells]], axis=1).ravel()
        real = np.abs(amount) > 0
        unit = float(np.median(np.abs(amount[real]))) if real.any() else 1.0
        size, ties = np.abs(value), np.zeros(len(value))
        if key is not None:
            draws = drawn(table, key)
            # Exponential with the middle protection level as mean: orders of cells whose values
            # differ by about a level are all likely.
            size, ties = size - unit * np.log(draws), tie_breaks(table, draws)
        price = _prices(table, objective, size, ties)
        price = np.where(wished, _PREFERRED * price, price)
        knowledge = prior = None
        if attacker == "contributors":
            knowledge = Contributors.of(table, value, primary | counted)
            prior = Prior(
                table, value, primary | counted, down, up, knowledge, unit, whole=table.is_whole
            )
        return cls(
            table,
            independent(table.equations, live).tocsc(),
            value,
            down,
            up,
            primary,
            live,
            price,
            size,
            target[real],
            amount[real],
            knowledge,
            prior,
            unit,
            bounds,
            scale,
            tied=key is not None and objective == "count" and not wished.any(),
        )

    def names(self, cells: Iterable[int], most: int = 5) -> list[str]:
        """Return the codes of some cells, as people read them."""
        return [" × ".join(self.table.labels(int(cell))) for cell in list(cells)[:most]]


def _prices(table: Table, objective: str, size: Floats, ties: Floats) -> Floats:
    if objective == "count":
        return 1.0 + ties
    if objective == "cost":
        if table.cost is None:
            raise InputError(
                "the objective 'cost' needs a cost for each cell",
                code="cost-missing",
                hint="give the column with cost=…, or choose another objective",
            )
        price = table.cost * (1.0 + ties)
        if price.min(initial=0.0) < 0:
            raise InputError("a cell has a negative cost", code="cost-negative", column="cost")
    else:
        price = size
    if objective == "log-value":
        price = np.log1p(price)
    positive = price[price > 0]
    # Nothing is free: among equals fewer cells are withheld.
    least = 1e-3 * float(positive.min()) if positive.size else 1.0
    return np.maximum(price, least)


def _mask(table: Table, cells: Iterable[int] | Bools) -> Bools:
    given = np.asarray(cells if isinstance(cells, np.ndarray) else list(cells))
    if given.dtype == bool and given.shape == (len(table),):
        return given
    mask = np.zeros(len(table), dtype=bool)
    mask[given.astype(np.int64)] = True
    return mask


def _require_choice(name: str, found: str, choices: tuple[str, ...]) -> None:
    if found not in choices:
        guess = nearest(found, choices)
        raise InputError(
            f"there is no {name} {found!r}",
            code=f"unknown-{name}",
            hint=f"write {guess!r}" if guess else "choose one of " + ", ".join(choices),
        )
