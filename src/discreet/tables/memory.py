"""Tables and what was released before: facts of a table, and the judgement of all of them together.

Two things are looked at. No set of fewer than k people may be told: this is decided from the sets of
records alone, as for the answers of a gateway. And every sensitive cell of every table of this
snapshot must keep its protection interval, over sums of atoms: records that no table tells apart.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.alternatives import unmoved
from discreet.audit.atoms import atoms_of
from discreet.audit.blocks import Blocks
from discreet.audit.joint import JointSets, Remembers, cell_pairs, cells_over
from discreet.audit.kinship import kin_of
from discreet.audit.outsider.feasible import complete
from discreet.audit.rules import FAMILY as RULES
from discreet.data.engines.results import code_text
from discreet.data.facts import Facts, LinearFacts, UncoveredFacts
from discreet.data.linked import JointTable
from discreet.data.table import Dimension, Status, Table
from discreet.errors import RefusedError
from discreet.ledger.memory import Memory
from discreet.tables.tabulation import mean_count

if TYPE_CHECKING:
    from discreet.tables.protected_table import ProtectedTable

__all__ = ["JointJudgement", "state_facts"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def state_facts(release: ProtectedTable, memory: Memory) -> list[Facts]:
    """Return what a protected table tells."""
    if release.method.acting.risk == "noise":
        return []
    table, done = release.table, release.protected
    if release.method.acting.risk != "intervals" and done.lower is None:
        return [UncoveredFacts(f"values were changed by {release.method.name}")]
    lower = np.where(done.withheld, np.nan, done.value)
    upper = lower.copy()
    if done.lower is not None and done.upper is not None:
        lower, upper = np.asarray(done.lower), np.asarray(done.upper)
    sums = facts_of(table, release.rules, lower, upper, memory, attacker=release.attacker)
    if table.statistic != "mean":
        return [sums]
    # A mean is printed with its number of records: both are told.
    number = np.where(np.isnan(lower), np.nan, mean_count(table))
    counts = dataclasses.replace(
        sums, statistic="count", measure=None, lower=number, upper=number.copy(),
        identities=memory.roster.amounts([sums.weight] if sums.weight else []),
        near=memory.roster.nearly([sums.weight] if sums.weight else []), kin=(),
    )  # fmt: skip
    return [dataclasses.replace(sums, statistic="sum"), counts]


def facts_of(
    table: Table,
    rules: Sequence[Any],
    lower: Floats,
    upper: Floats,
    memory: Memory,
    *,
    attacker: str = "outsider",
) -> LinearFacts:
    """Return the facts of a table whose cells are told within bounds. Any: rules."""
    source = getattr(table, "source", None)
    members, combinations = _members(table, memory)
    weight = None if source is None else source.weight
    added = [name for name in (table.measure, weight) if name]
    return LinearFacts(
        statistic=table.statistic,
        measure=table.measure,
        by=table.by,
        hierarchies=tuple(
            tuple(tuple((str(c), str(p)) for c, p in h.pairs()) for h in d.hierarchies)
            for d in table.dimensions
        ),
        codes=table.codes.astype(np.int64),
        lower=np.asarray(lower, dtype=np.float64),
        upper=np.asarray(upper, dtype=np.float64),
        rules=tuple(rule.settings() for rule in rules),
        k=smallest_set(rules),
        attacker=attacker,
        unit=None if source is None else source.unit,
        weight=weight,
        missing=None if source is None else source.missing,
        members=members,
        combinations=combinations,
        identities=memory.roster.amounts(added),
        near=memory.roster.nearly(added),
        kin=_kin(table, memory),
    )


def _kin(table: Table, memory: Memory) -> tuple[str, ...]:
    """Return the measures of earlier tables and files that tell of this one's."""
    if table.measure is None:
        return ()
    others = [f.measure for _, f in memory.linear() if f.measure is not None]
    return tuple(kin_of(memory.roster, table.measure, others))


def smallest_set(rules: Sequence[Any]) -> int:
    """Return k: no fewer people than this may be told of as one. Any: rules."""
    return max([2, *(int(rule.n) for rule in rules if rule.name == "minimum-frequency")])


def _members(table: Table, memory: Memory) -> tuple[Ints, Ints]:
    """Return each record's combination of codes, in roster order, and the combinations."""
    source = getattr(table, "source", None)
    places = []
    for dimension in table.dimensions:
        codes = _codes(memory, source, dimension)
        places.append(codes)
    stacked = np.stack(places, axis=1)
    outside = (stacked < 0).any(axis=1)
    combinations, members = np.unique(stacked, axis=0, return_inverse=True)
    return np.where(outside, -1, members.ravel()).astype(np.int64), combinations.astype(np.int64)


def _codes(memory: Memory, source: Any, dimension: Dimension) -> Ints:
    """Return the place of each record's code; −1 for a missing value that has no code."""
    roster = memory.roster
    dataset = roster.dataset if source is None or source.dataset is memory.dataset else None
    if dataset is None:  # recoded: rows are the same, in the same order
        column = source.dataset.arrow([dimension.name]).column(0).take(roster.order)
        _require_function(roster.column(dimension.name), column)
    else:
        column = roster.column(dimension.name)
    coded = column.combine_chunks().dictionary_encode()
    missing = -1
    if source is not None and source.missing is not None:
        missing = dimension.index.get(source.missing, -1)
    index = [
        missing if value is None else dimension.index.get(code_text(value), -1)
        for value in coded.dictionary.to_pylist()
    ]
    lookup = np.array([*index, missing], dtype=np.int64)
    found = coded.indices.fill_null(len(index)).to_numpy(zero_copy_only=False)
    return np.asarray(lookup[found], dtype=np.int64)


def _require_function(before: Any, after: Any) -> None:
    """Refuse records that cannot be told again after recoding. Any: Arrow columns."""
    pairs = set(zip(before.to_pylist(), after.to_pylist(), strict=True))
    if len(pairs) != len({one for one, _ in pairs}):
        raise RefusedError(
            "the records behind the recoded table do not come in a fixed order",
            code="unknown-records",
            hint="write the recoded column into the records, and tabulate those",
        )


#: How often amounts that end too soon are made to move less.
_TIGHTER = 4


class JointJudgement(JointSets):
    """A new table against everything that a ledger remembers of the same quantity."""

    #: Which cells were told when alternatives were drawn last, and the sensitive cells that none of
    #: them has shown to keep their intervals.
    _unshown: tuple[Bools, Ints] | None = None
    #: Earlier tables with their sensitive cells, by their numbers.
    _marked: list[tuple[int, Table, Any]] | None = None

    def __init__(self, memory: Remembers, facts: LinearFacts, *, near: bool = False) -> None:
        super().__init__(memory, facts, near=near)
        #: What was found of each block in which amounts of nothing stay nothing.
        self._kept_amounts: dict[int, Any] = {}

    # -- protection intervals ----------------------------------------------------------------------
    def joint(self, marked: Table, *, alone: bool = False) -> tuple[JointTable, Bools] | None:
        """Return all cells with the atoms below them, and which of them stay withheld.

        The cells of the new table come first. Cells of other snapshots are sensitive where all
        their records are still there unchanged; else their values are not known any more. None
        where there is no earlier table, unless it is wanted `alone`.
        """
        if not self.alike and not alone:
            return None
        records = self._records(marked)
        tables = [_detailed(marked, self.facts, self._new.parts, records)]
        same = self._told[: len(self.alike)]
        for (_, fact), told in zip(self.alike, same, strict=True):
            own = Table(
                fact.dimensions,
                fact.codes.astype(np.int32),
                np.zeros(len(fact.lower)),
                statistic=marked.statistic,
                measure=marked.measure,
                confidential=marked.confidential,
            )
            found = _detailed(own, fact, told.parts, records)
            tables.append(_marked_again(found, fact))
        facts = [self.facts, *(fact for _, fact in self.alike)]
        parts = [self._new.parts, *(told.parts for told in same)]
        atoms = atoms_of(parts)
        bottom = _atom_table(atoms, records, tables[0])
        whole, withheld = _stack(tables, facts, parts, atoms, bottom)
        if np.isfinite(whole.value).all():
            return whole, withheld
        return whole.replace(value=complete(whole, withheld | np.isnan(whole.value))), withheld

    def unprotected(self, marked: Table, shown: Bools, rng: np.random.Generator) -> Ints | None:
        """Return the atoms of sensitive cells not shown by alternatives to keep their intervals.

        None where alternatives do not tell: but for outsiders and sums that are not negative.
        """
        records = self._records(marked)
        amount = records.amount * records.factor
        if self.facts.attacker != "outsider" or marked.statistic != "sum":
            return None
        if any((~fact.exact & ~fact.withheld).any() for _, fact in self.alike):
            return None  # told within bounds, which alternatives would have to keep
        there = np.bincount(self.atoms, np.nan_to_num(amount, nan=-1.0)).astype(np.float64)
        if (amount < 0).any() or not np.isfinite(amount).all():
            return None
        cells, lower, upper = self._sensitive(marked, shown, records)
        room = np.concatenate([
            told.rows(chosen) @ _sums(told.parts, amount, told.size) for _, told, chosen in cells
        ])  # fmt: skip
        none = (lower <= 0) & (upper <= 0)
        lower = np.minimum(np.where(none, 1e-3 * room, lower), room)
        upper = np.where(none, 1e-3 * room, upper)
        # What was shown of a cell holds when fewer cells are told: only the others are looked at.
        still = np.arange(len(room))
        if self._unshown is not None and not (shown & ~self._unshown[0]).any():
            still = self._unshown[1]
        levels = lower[still], upper[still]
        cells = _some(cells, still)
        blocks = self._moving(shown, there, rng)
        if blocks is not None:
            found = _unreached(blocks, there, cells, levels, rng)
        else:
            rows = self._over(cells)
            loose = self.within(~shown)
            unmoved_ = unmoved(self.told(shown), there, rows, levels, loose, rng)
            if unmoved_ is None:
                return None
            found = unmoved_
        self._unshown = shown.copy(), still[found]
        return np.unique(self._over(_some(cells, found)).indices).astype(np.int64)

    @functools.cached_property
    def _scale(self) -> Floats:
        """By how much each atom may well move: large amounts move more, in absolute numbers."""
        roster, facts = self.memory.roster, self.facts
        scale = np.ones(self.size)
        if roster.dataset is None or facts.statistic == "count" or facts.measure is None:
            return scale
        amount = np.abs(_numbers(roster.column(facts.measure)))
        if facts.weight is not None:
            amount *= np.abs(_numbers(roster.column(facts.weight)))
        own = self.atoms[self._universe[self.memory.identity]]
        there = _sums(own, amount, self.size)
        if not np.isfinite(there).all() or not (there > 0).any():
            return scale
        middle = float(np.median(there[there > 0]))
        return np.asarray(np.sqrt(np.clip(np.where(there > 0, there / middle, 1.0), 1e-6, 1e6)))

    def _moving(self, shown: Bools, there: Floats, rng: np.random.Generator) -> Blocks | None:
        """Return alternatives by blocks in which amounts of nothing stay nothing."""
        if (there > 0).all():
            return self.blocks(shown, rng)
        splits = [self._new.split(shown), *self._earlier_splits]
        scale = np.where(there > 0, self._scale, 0.0)
        return Blocks.of(self._layout, splits, scale, rng, 1, self._kept_amounts)

    def _over(self, cells: Sequence[tuple[int, Any, Bools]]) -> sparse.csr_matrix:
        """Return cells over atoms. Any: what a release told."""
        rows = [cells_over(told, chosen, self.atoms) for _, told, chosen in cells if chosen.any()]
        return sparse.csr_matrix(sparse.vstack([sparse.csr_matrix((0, self.size)), *rows]))

    def _sensitive(
        self, marked: Table, shown: Bools, records: _Records
    ) -> tuple[list[tuple[int, Any, Bools]], Floats, Floats]:
        """Return the sensitive withheld cells of all tables, and their levels. Any: what was told."""
        if self._marked is None:
            same = self._told[: len(self.alike)]
            self._marked = []
            for number, ((_, fact), told) in enumerate(zip(self.alike, same, strict=True), 1):
                if not told.withheld.any():
                    continue
                own = Table(
                    fact.dimensions, fact.codes.astype(np.int32), np.zeros(len(fact.lower)),
                    statistic=marked.statistic, measure=marked.measure,
                    confidential=marked.confidential,
                )  # fmt: skip
                found = _detailed(own, fact, told.parts, records, told.withheld)
                self._marked.append((number, _marked_again(found, fact), told))
        every = [
            (0, marked, self._new, ~shown),
            *((number, table, told, told.withheld) for number, table, told in self._marked),
        ]
        cells: list[tuple[int, Any, Bools]] = []
        lower: list[Floats] = []
        upper: list[Floats] = []
        for number, table, told, hidden in every:
            chosen = (np.asarray(table.status) == Status.PRIMARY) & hidden
            cells.append((number, told, chosen))
            for level, several in ((table.lower, lower), (table.upper, upper)):
                several.append((np.zeros(len(table)) if level is None else level)[chosen])
        return cells, np.abs(np.concatenate(lower)), np.abs(np.concatenate(upper))

    def _records(self, like: Table) -> _Records:
        """Return what is known of all records there ever were; the amounts of some are not."""
        roster = self.memory.roster
        now = self._universe[self.memory.identity]
        size, weight = self._size, self.facts.weight
        ones = np.ones(len(roster))
        amount, factor = np.full(size, np.nan), np.ones(size)
        counts = like.statistic == "count"
        if roster.dataset is not None and not counts:
            amount[now] = _numbers(roster.column(str(like.measure)))
        if counts and (weight is None or roster.dataset is None):
            # A record that is gone still counted one; of all, a reader knows none.
            amount[:] = np.nan if roster.dataset is None else 1.0
        elif counts:
            amount[now] = ones
        if weight is not None and roster.dataset is not None:
            factor[now] = _numbers(roster.column(weight))
        units = np.arange(size, dtype=np.int64)
        if self.facts.unit is not None and len(roster.units):
            marks = np.full(size, -1, dtype=np.int64)
            for numbers, one in zip(self._universe.values(), self._rosters, strict=True):
                if len(one.units):
                    marks[numbers] = one.units
            _, known = np.unique(marks, return_inverse=True)
            units = known.astype(np.int64).ravel()
        wide = 2 if like.contributions is None else like.contributions.shape[1]
        return _Records(amount, factor, units, wide, _ends(like))


@dataclasses.dataclass(frozen=True, eq=False)
class _Records:
    """All records there ever were: amounts, weights, and whose they are."""

    amount: Floats
    factor: Floats
    units: Ints
    #: How many of the largest contributions are kept.
    wide: int
    #: The least and the greatest value of a confidential measure that has few.
    values: tuple[float, float] | None

    def range(self, place: Ints, record: Ints, size: int) -> tuple[Floats | None, Floats | None]:
        """Return between what sums lie at each of so many places, where the measure has few values."""
        if self.values is None:
            return None, None
        people: Floats = np.bincount(place, self.factor[record], size).astype(np.float64)
        return self.values[0] * people, self.values[1] * people

    def largest(self, place: Ints, record: Ints, size: int) -> tuple[Ints, Floats, Ints]:
        """Return for each of so many places the number of units, the largest amounts and whose."""
        import pandas as pd

        frame = pd.DataFrame({"p": place, "u": self.units[record], "x": self.amount[record]})
        each = frame.groupby(["p", "u"], sort=False)["x"].sum(min_count=1).reset_index()
        each = each.sort_values("x", key=lambda x: -x.abs(), kind="stable", na_position="first")
        rank = each.groupby("p", sort=False).cumcount().to_numpy()
        chosen = rank < self.wide
        top = np.zeros((size, self.wide))
        who = np.full((size, self.wide), -1, dtype=np.int64)
        at = each["p"].to_numpy()[chosen], rank[chosen]
        top[at], who[at] = each["x"].to_numpy()[chosen], each["u"].to_numpy()[chosen]
        return np.bincount(each["p"].to_numpy(), minlength=size).astype(np.int64), top, who


def _detailed(
    table: Table,
    facts: LinearFacts,
    parts: Ints,
    records: _Records,
    chosen: Bools | None = None,
) -> Table:
    """Return a table with sums, counts and contributors taken from the records themselves.

    Where only some cells are `chosen`, the others stay without.
    """
    inside = np.flatnonzero(parts >= 0)
    order = inside[np.argsort(parts[inside], kind="stable")]
    cell, part = cell_pairs(facts)
    if chosen is not None:
        cell, part = cell[chosen[cell]], part[chosen[cell]]
    size = int(max(part.max(initial=-1), parts.max(initial=-1))) + 1
    start = np.searchsorted(parts[order], np.arange(size + 1))
    many = start[part + 1] - start[part]
    step = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    record = order[np.repeat(start[part], many) + step]
    place = np.repeat(cell, many)
    # A unit with several records in a cell is one contributor.
    count, top, who = records.largest(place, record, len(table))
    amount = records.amount[record] * records.factor[record]
    value: Floats = np.bincount(place, weights=amount, minlength=len(table)).astype(np.float64)
    if table.count is not None:
        value = table.value  # as it was tabulated
    elif table.status is not None:
        value = np.where(np.isnan(value), table.value, value)  # as it was told
    least, most = records.range(place, record, len(table))
    return table.replace(
        value=value, count=count, contributions=top, contributors=who, least=least, most=most
    )


def _marked_again(table: Table, facts: LinearFacts) -> Table:
    """Return an earlier table with its sensitive cells, as far as their values are still known."""
    known = np.isfinite(table.value) & np.isfinite(np.asarray(table.contributions)).all(axis=1)
    size = len(table)
    safe = table.replace(
        value=np.where(known, table.value, 0.0),
        contributions=np.where(known[:, None], np.asarray(table.contributions), 0.0),
    )
    status, lower, upper = np.zeros(size, np.int8), np.zeros(size), np.zeros(size)
    for stated in facts.rules:
        found = _rule(stated).judge(safe)
        hit = found.sensitive & known & facts.withheld
        status[hit] = Status.PRIMARY
        lower = np.where(hit, np.maximum(lower, found.lower), lower)
        upper = np.where(hit, np.maximum(upper, found.upper), upper)
    told = ~facts.withheld
    value = np.where(told, facts.lower, np.where(known, table.value, np.nan))
    return safe.replace(value=value, status=status, lower=lower, upper=upper)


def _rule(stated: Any) -> Any:
    """Return a rule from its settings. Any: as JSON has it."""
    values = {name: value for name, value in stated.items() if name != "name"}
    return RULES.get(stated["name"])(**values)


def _stack(
    tables: Sequence[Table],
    facts: Sequence[LinearFacts],
    parts: Sequence[Ints],
    atoms: Ints,
    bottom: Table,
) -> tuple[JointTable, Bools]:
    """Return the cells of several tables and the atoms as one table, and which stay withheld."""
    sizes = [len(table) for table in tables]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    size = int(starts[-1]) + len(bottom)
    blocks = []
    for start, table, fact, part in zip(starts, tables, facts, parts, strict=False):
        own = table.equations.tocoo()
        blocks.append(
            sparse.csr_matrix((own.data, (own.row, own.col + start)), shape=(own.shape[0], size))
        )
        blocks.append(_leaves(table, fact, part, int(start), atoms, int(starts[-1]), size))
    first = tables[0]
    codes = np.zeros((size, len(first.dimensions) + 1), dtype=np.int32)
    codes[: sizes[0], :-1] = first.codes
    codes[sizes[0] :, -1] = np.arange(1, size - sizes[0] + 1)
    words = ("Total", *(f"#{n}" for n in range(1, size - sizes[0] + 1)))
    other = Dimension("earlier", words, np.full((1, len(words)), -1, dtype=np.int32))
    everything = [*tables, bottom]

    def joined(name: str) -> Any:
        return np.concatenate([getattr(table, name) for table in everything])

    withheld, never = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    if first.never is not None:
        never[: sizes[0]] = first.never
    for start, fact in zip(starts[1:-1], facts[1:], strict=True):
        withheld[start : start + len(fact.lower)] = fact.withheld
        never[start : start + len(fact.lower)] = ~fact.withheld
    withheld[starts[-1] :] = True
    cost = first.cost
    joint = JointTable(
        dimensions=(*first.dimensions, other),
        codes=codes,
        value=joined("value"),
        count=joined("count"),
        contributions=joined("contributions"),
        contributors=joined("contributors"),
        lower=joined("lower"),
        upper=joined("upper"),
        cost=None if cost is None else np.concatenate([cost, np.zeros(size - sizes[0])]),
        status=joined("status"),
        statistic=first.statistic,
        measure=first.measure,
        never=never,
        confidential=first.confidential,
        whole=True if first.is_whole else None,
        least=None if first.least is None else joined("least"),
        most=None if first.most is None else joined("most"),
        steps=first.steps,
        relations=sparse.vstack(blocks, format="csr"),
    )
    return joint, withheld


def _leaves(
    table: Table, fact: LinearFacts, parts: Ints, start: int, atoms: Ints, bottom: int, size: int
) -> sparse.csr_matrix:
    """Return one equation for each combination of codes: its cell is the sum of its atoms."""
    keys = np.zeros(len(fact.combinations), np.int64)
    for place, dimension in enumerate(table.dimensions):
        keys = keys * len(dimension.codes) + fact.combinations[:, place]
    cell = table.find(keys)
    pairs = np.unique(np.stack([parts, atoms], axis=1), axis=0)
    pairs = pairs[pairs[:, 0] >= 0]
    pairs = pairs[cell[pairs[:, 0]] >= 0]
    used, row = np.unique(pairs[:, 0], return_inverse=True)
    rows = np.concatenate([np.arange(len(used)), row.ravel()])
    columns = np.concatenate([cell[used] + start, pairs[:, 1] + bottom])
    signs = np.concatenate([np.ones(len(used)), -np.ones(len(pairs))])
    return sparse.csr_matrix((signs, (rows, columns)), shape=(len(used), size))


def _atom_table(atoms: Ints, records: _Records, like: Table) -> Table:
    """Return the atoms as cells: their sums, counts and largest contributions."""
    size = int(atoms.max(initial=-1)) + 1
    every = np.arange(len(atoms), dtype=np.int64)
    count, top, who = records.largest(atoms, every, size)
    nothing = np.zeros(size)
    least, most = records.range(atoms, every, size)
    return Table(
        (Dimension("atom", ("Total",), np.array([[-1]], dtype=np.int32)),),
        np.zeros((size, 1), dtype=np.int32),
        np.bincount(atoms, records.amount * records.factor, size).astype(np.float64),
        count=count,
        contributions=np.nan_to_num(top),
        contributors=who,
        lower=nothing,
        upper=nothing.copy(),
        status=np.zeros(size, np.int8),
        statistic=like.statistic,
        least=least,
        most=most,
        steps=like.steps,
    )


def _sums(places: Ints, amount: Floats, size: int) -> Floats:
    """Return the sums of amounts at so many places; −1 is none."""
    inside = places >= 0
    found: Floats = np.bincount(places[inside], amount[inside], size).astype(np.float64)
    return found


def _unreached(
    blocks: Blocks,
    there: Floats,
    cells: Sequence[tuple[int, Any, Bools]],
    levels: tuple[Floats, Floats],
    rng: np.random.Generator,
) -> Ints:
    """Return the cells not shown to reach their levels. Any: what was told."""
    left, tight = blocks.unmoved(there, [(n, t.rows(c)) for n, t, c in cells], levels, rng)
    for _ in range(_TIGHTER):
        if not len(left) or not tight.any():
            break
        again = blocks.tightened(tight, rng)
        if again is None:
            break
        blocks = again
        own = [(n, t.rows(c)) for n, t, c in _some(cells, left)]
        more, tight = blocks.unmoved(there, own, (levels[0][left], levels[1][left]), rng)
        left = left[more]
    return left


def _some(cells: Sequence[tuple[int, Any, Bools]], chosen: Ints) -> list[tuple[int, Any, Bools]]:
    """Return some of the cells of several tables, by their places among all. Any: what was told."""
    found, start = [], 0
    for number, told, several in cells:
        places = np.flatnonzero(several)
        own = chosen[(chosen >= start) & (chosen < start + len(places))] - start
        kept = np.zeros(len(several), dtype=bool)
        kept[places[own]] = True
        found.append((number, told, kept))
        start += len(places)
    return found


def _ends(table: Table) -> tuple[float, float] | None:
    """Return the least and the greatest value of a confidential measure, from what sums lie between."""
    if table.least is None or table.most is None:
        return None
    people = mean_count(table)
    place = int(np.argmax(people))
    return float(table.least[place] / people[place]), float(table.most[place] / people[place])


def _numbers(column: Any) -> Floats:
    """Return an Arrow column as numbers, nothing for missing ones."""
    import pyarrow.compute as pc

    filled = pc.fill_null(pc.cast(column, "float64"), 0.0)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.float64)
