"""Sets of people that releases tell together: tables, files and answers about one quantity.

No set of fewer than k people may be told. This is decided from the sets of records alone, over
atoms: records that no release tells apart.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.alternatives import (
    STILL,
    alternatives,
    bound,
    bound_besides,
    moving_together,
    told_parts,
    told_rows,
)
from discreet.audit.answers import answered_facts, answered_measures
from discreet.audit.atoms import SCALE, atoms_of, incidence, weights_of
from discreet.audit.blocks import Blocks, Layout, Split
from discreet.audit.history.auditor import Auditor
from discreet.audit.kinship import kin_of, rescaled
from discreet.data.engines.cell_codes import ancestors
from discreet.data.facts import LinearFacts
from discreet.data.roster import Roster, locate_marks
from discreet.data.table import Table
from discreet.errors import InfeasibleError
from discreet.progress import require_time

__all__ = ["JointSets", "Remembers", "cell_pairs", "cells_over", "require_space"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: From so many atoms on, alternative databases are drawn before the exact way is gone.
_MANY = 5_000
#: Alternative databases that are drawn at a time.
_DRAWS = 4
#: Bytes that the exact way may need: one number for each told sum and atom.
_MOST_BYTES = 8 * 2**30


class Remembers(Protocol):
    """What the memory of a ledger offers to a judgement."""

    @property
    def identity(self) -> str:
        """The identity of this snapshot."""

    @property
    def roster(self) -> Roster:
        """The records of this snapshot."""

    @property
    def rosters(self) -> dict[str, Roster]:
        """The records of all snapshots."""

    @property
    def answers(self) -> Sequence[Any]:
        """The exact answers that were given. Any: entries of the ledger."""

    def linear(self) -> Sequence[tuple[Any, LinearFacts]]:
        """Return the linear facts of earlier releases. Any: what names a release."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Told:
    """Sets of records of one release, for the auditor."""

    name: str
    #: For each record of the universe the number of its part; −1 where it is in none.
    parts: Ints
    #: Pairs of a cell and a part that counts into it.
    pairs: tuple[Ints, Ints]
    #: The cells that are told exactly, and those that are withheld.
    shown: Bools
    withheld: Bools
    k: int

    @property
    def size(self) -> int:
        """The number of parts."""
        return int(max(self.pairs[1].max(initial=-1), self.parts.max(initial=-1))) + 1

    def rows(self, chosen: Bools) -> sparse.csr_matrix:
        """Return which parts each chosen cell has."""
        return _parts(self, chosen, self.size)

    def split(self, chosen: Bools) -> Split:
        """Return which parts the chosen cells tell by themselves, and the other sums they tell."""
        across, single = told_parts(self.rows(chosen))
        is_single = np.zeros(self.size, dtype=bool)
        is_single[single] = True
        return Split(is_single, across)


class JointSets:
    """A new release against everything that a ledger remembers of the same quantity."""

    def __init__(self, memory: Remembers, facts: LinearFacts, *, near: bool = False) -> None:
        self.memory, self.facts = memory, facts
        #: Whether amounts that changed a little are taken for known to be the same.
        self._near = near
        #: Which cells were told when blocks were looked at last, and what was found, also of each.
        self._blocks: tuple[Bools, Blocks | None] | None = None
        self._kept: dict[int, Any] = {}
        #: Which cells were told when sets were looked at last, and the atoms not shown to be safe.
        self._exposed: tuple[Bools, Ints] | None = None
        alike = [(e, f) for e, f in memory.linear() if f.quantity == facts.quantity]
        if memory.answers:
            alike += answered_facts(memory, facts.quantity)
        kindred: list[tuple[Any, LinearFacts]] = []
        for name, factor in self._kin().items():
            several = [(e, f) for e, f in memory.linear() if f.quantity == (name, facts.weight)]
            if memory.answers:
                several += answered_facts(memory, (name, facts.weight))
            own = str(facts.measure)
            if factor is None:
                kindred += [(e, rescaled(f, own, 1.0)) for e, f in several]
            else:
                alike += [(e, rescaled(f, own, factor)) for e, f in several]
        #: Earlier facts of the same quantity; exact answers are tables by their groups.
        self.alike: list[tuple[Any, LinearFacts]] = alike
        #: Earlier facts of measures that tell of this one and are no multiples of it: their sets
        #: are looked at, and not their values.
        self.kindred: list[tuple[Any, LinearFacts]] = kindred
        self.is_alone = not alike and not kindred

    def _kin(self) -> Mapping[str, float | None]:
        """Return the measures of earlier releases and answers that tell of this one."""
        measure, weight = self.facts.quantity
        if measure is None:
            return {}
        named = {f.quantity[0] for _, f in self.memory.linear()}
        if self.memory.answers and weight is None:
            named |= answered_measures(self.memory)
        others = {name for name in named if name is not None} - {measure}
        if not others:
            return {}
        if self.memory.roster.dataset is not None:
            return kin_of(self.memory.roster, measure, others)
        told = {str(f.measure) for _, f in self.memory.linear() if measure in f.kin}
        return dict.fromkeys(sorted(others & {*self.facts.kin, *told}))

    # -- the universe ------------------------------------------------------------------------------
    @functools.cached_property
    def _universe(self) -> dict[str, Ints]:
        """For each snapshot the numbers of its records among all records there ever were."""
        now = self.memory.roster
        found = {self.memory.identity: np.arange(len(now), dtype=np.int64)}
        self._rosters = [now]
        stated = [(e.snapshot, f) for e, f in self.alike if len(f.identities)]
        facts = {self.memory.identity: self.facts} | dict(stated)
        size = len(now)
        for identity in dict.fromkeys(e.snapshot for e, _ in (*self.alike, *self.kindred)):
            if identity in found:
                continue
            then = self.memory.rosters[identity]
            numbers = np.full(len(then), -1, dtype=np.int64)
            for (other, known), roster in zip(list(found.items()), self._rosters, strict=True):
                place = _located(then, facts.get(identity), roster, facts.get(other), self._near)
                numbers = np.where(
                    (numbers < 0) & (place >= 0), known[np.maximum(place, 0)], numbers
                )
            new = numbers < 0
            numbers[new] = size + np.arange(int(new.sum()))
            size += int(new.sum())
            found[identity] = numbers
            self._rosters.append(then)
        self._size = size
        return found

    def _spread(self, identity: str, members: Ints) -> Ints:
        """Return members of a snapshot's records over all records there ever were."""
        numbers = self._universe[identity]
        if len(self._universe) == 1:
            return members
        whole = np.full(self._size, -1, dtype=np.int64)
        whole[numbers] = members
        return whole

    @functools.cached_property
    def _told(self) -> list[_Told]:
        several = (*self.alike, *self.kindred)
        return [_cells(e.name, f, self._spread(e.snapshot, f.members)) for e, f in several]

    @functools.cached_property
    def _new(self) -> _Told:
        spread = self._spread(self.memory.identity, self.facts.members)
        return _cells("this table", self.facts, spread)

    @functools.cached_property
    def atoms(self) -> Ints:
        """The atom of each record there ever was."""
        several = [self._new.parts, *(told.parts for told in self._told)]
        several.append(np.isin(np.arange(self._size), self._universe[self.memory.identity]) * 1)
        return atoms_of(several)

    @functools.cached_property
    def _weights(self) -> Ints:
        halved = None
        units = np.arange(self._size, dtype=np.int64)
        if all(len(roster.units) for roster in self._rosters) and self._rosters:
            marks = np.zeros(self._size, np.int64)
            for numbers, roster in zip(self._universe.values(), self._rosters, strict=True):
                marks[numbers] = roster.units
            _, units = np.unique(marks, return_inverse=True)
            units = units.astype(np.int64).ravel()
        elif len(self._universe) > 1:
            times = np.zeros(self._size, np.int64)
            for numbers in self._universe.values():
                times[numbers] += 1
            halved = times < len(self._universe)
        return weights_of(self.atoms, units, halved)

    # -- sets under k ------------------------------------------------------------------------------
    def isolating(self, wanted: Bools) -> tuple[Bools, str]:
        """Return which of the wanted cells would tell of fewer than k people, and beside what.

        Larger cells are looked at first, so that what must be withheld is small. Cells that earlier
        releases withhold must not follow from what is told either. Where amounts of other snapshots
        are nearly the same, neither may hold for somebody who knows by how much they changed: a
        person who left would be told within the others' changes.
        """
        refused, beside = self._isolating(wanted)
        if not self._near and self._has_near:
            known = type(self)(self.memory, self.facts, near=True)
            more, named = known._isolating(wanted & ~refused)
            return refused | more, named if more.any() else beside
        return refused, beside

    # -- alternative databases ---------------------------------------------------------------------
    @property
    def is_large(self) -> bool:
        """Whether there are so many atoms that alternative databases are worth their while."""
        return self.size >= _MANY

    @property
    def size(self) -> int:
        """The number of atoms."""
        return int(self.atoms.max(initial=-1)) + 1

    @functools.cached_property
    def _earlier_rows(self) -> list[sparse.csr_matrix]:
        return [_rows(told, told.shown, self.atoms) for told in self._told]

    @functools.cached_property
    def _withheld_rows(self) -> sparse.csr_matrix:
        """The withheld cells of earlier releases over atoms."""
        size = int(self.atoms.max(initial=-1)) + 1
        several = [told for told in self._told if told.withheld.any()]
        rows = [cells_over(told, told.withheld, self.atoms) for told in several]
        return sparse.csr_matrix(sparse.vstack([sparse.csr_matrix((0, size)), *rows]))

    def told(self, wanted: Bools) -> sparse.csr_matrix:
        """Return all told sums over atoms, with the wanted cells of the new release."""
        rows = _rows(self._new, wanted, self.atoms)
        return sparse.csr_matrix(sparse.vstack([*self._earlier_rows, rows]))

    @functools.cached_property
    def _layout(self) -> Layout:
        first = np.zeros(self.size, dtype=np.int64)
        first[self.atoms[::-1]] = np.arange(self._size)[::-1]
        several = (self._new, *self._told)
        return Layout.of([told.parts[first] for told in several], [told.size for told in several])

    @functools.cached_property
    def _earlier_splits(self) -> list[Split]:
        return [told.split(told.shown) for told in self._told]

    @functools.cached_property
    def _scale(self) -> Floats:
        """By how much each atom may well move; any positive numbers will do."""
        return np.ones(self.size)

    def blocks(self, wanted: Bools, rng: np.random.Generator) -> Blocks | None:
        """Return alternatives block by block, where the wanted cells of the new release are told."""
        if self._blocks is None or not np.array_equal(self._blocks[0], wanted):
            splits = [self._new.split(wanted), *self._earlier_splits]
            found = Blocks.of(self._layout, splits, self._scale, rng, _DRAWS, self._kept)
            self._blocks = wanted.copy(), found
        return self._blocks[1]

    def exposed(self, wanted: Bools, rng: np.random.Generator) -> Ints | None:
        """Return atoms that alternative databases do not show to be apart from all others.

        Where there is none, no set of fewer than k people is told, and no withheld cell. None where
        the projection does not converge, or more than two atoms make such a set: then the exact way
        decides. Randomness only chooses which alternatives are looked at.
        """
        k = max([self.facts.k, *(told.k for told in self._told)])
        least = max(int(self._weights.min(initial=k * SCALE)), 1)
        pairs = 2 * least < k * SCALE
        if 3 * least < k * SCALE:
            return None
        before = self._exposed
        narrower = before is not None and not (wanted & ~before[0]).any()
        if before is not None and narrower and not len(before[1]):
            return before[1]  # where less is told, there are the same alternatives
        blocks = self.blocks(wanted, rng)
        moves = None if blocks is None else blocks.alternatives()
        if moves is None:
            told = self.told(wanted)
            wishes = rng.standard_normal((told.shape[1], _DRAWS if pairs else 1))
            moves = alternatives(told, np.ones(told.shape[1]), wishes)
        if moves is None:
            return None
        hidden = self._withheld_rows
        found = bound(moves, pairs=False) & (self._weights < k * SCALE)
        # Of two atoms that are together fewer than k, each is so with the smallest there is.
        light = np.flatnonzero(self._weights + least < k * SCALE)
        if pairs:
            found[light] |= self._tied(moves, light)
        stays = np.abs(hidden @ moves).max(axis=1, initial=0.0) < STILL
        found[hidden[stays].indices] = True
        if not self._near and self._has_near:
            known = type(self)(self.memory, self.facts, near=True).exposed(wanted, rng)
            return None if known is None or len(known) else np.flatnonzero(found)
        open_ = np.flatnonzero(found)
        if before is not None and narrower:
            open_ = np.intersect1d(open_, before[1])
        self._exposed = wanted.copy(), open_
        return open_

    def _tied(self, moves: Floats, light: Ints) -> Bools:
        """Return which of some atoms move with another as no earlier release tells by itself."""
        plain = bound(moves[light], pairs=True)
        if not plain.any():
            return plain
        place = np.full(self.size, -1, dtype=np.int64)
        place[light] = np.arange(len(light))
        groups = (place[group] for group in self._told_groups)
        return bound_besides(moves[light], {frozenset(one.tolist()) for one in groups})

    @functools.cached_property
    def _told_groups(self) -> list[Ints]:
        """Atoms of which one earlier release tells sums: that is a matter of its own rules."""
        rng = np.random.default_rng(len(self._told))
        first = np.zeros(self.size, dtype=np.int64)
        first[self.atoms[::-1]] = np.arange(self._size)[::-1]
        found: list[Ints] = []
        for told in self._told:
            own = told.parts[first]
            order = np.argsort(own, kind="stable")
            many = np.bincount(own[own >= 0], minlength=told.size)
            start = np.searchsorted(own[order], np.arange(told.size))
            split = told.split(told.shown)
            double = np.flatnonzero(split.single & (many == 2))
            found += [order[start[one] : start[one] + 2] for one in double.tolist()]
            # Parts that are not told, and how they move if this release alone is kept.
            parts = np.unique(split.across.indices)
            rows = sparse.csr_matrix(split.across[:, parts])
            wishes = rng.standard_normal((len(parts), _DRAWS))
            moves = alternatives(rows, np.sqrt(many[parts]), wishes)
            if moves is not None:
                single = np.flatnonzero(many[parts] == 1)
                found += [
                    order[start[parts[single[one]]]] for one in moving_together(moves[single])
                ]
        return found

    def within(self, chosen: Bools) -> Ints:
        """Return the atoms in chosen cells of the new release that are not made of others."""
        cell, part = self._new.pairs
        single = np.bincount(cell, minlength=len(chosen))[cell] == 1
        parts = part[single & chosen[cell]]
        return np.unique(self.atoms[np.isin(self._new.parts, parts)])

    def cells_of(self, atoms: Ints) -> Bools:
        """Return which cells of the new release, not made of others, hold any of the atoms."""
        inside = np.isin(self.atoms, atoms) & (self._new.parts >= 0)
        found = np.zeros(len(self.facts.lower), dtype=bool)
        cell, part = self._new.pairs
        many = np.bincount(cell, minlength=len(found))
        single = many[cell] == 1
        found[cell[single & np.isin(part, np.unique(self._new.parts[inside]))]] = True
        return found

    @property
    def _has_near(self) -> bool:
        """Whether other snapshots say of amounts that they are nearly the same."""
        own, now = self.facts, self.memory.identity
        return bool(own.near.size) and any(f.near.size and e.snapshot != now for e, f in self.alike)

    @functools.cached_property
    def _learned(self) -> tuple[Auditor, list[tuple[str, Ints]]]:
        """What was told, and the withheld sets that do not follow from it, with their releases."""
        require_space(self.size, sum(int(told.shown.sum()) for told in self._told))
        k = max([self.facts.k, *(told.k for told in self._told)])
        # The auditor counts the sum over everybody as told; with somebody more it tells nothing.
        auditor = Auditor(np.append(self._weights, 4 * k * SCALE), k * SCALE)
        for told in self._told:
            for inside in _sets(told, told.shown, self.atoms):
                require_time()
                auditor.learn(inside)
        hidden = [
            (told.name, inside)
            for told in self._told
            for inside in _sets(told, told.withheld, self.atoms)
            if not auditor.decide(inside).known
        ]
        return auditor, hidden

    def _isolating(self, wanted: Bools) -> tuple[Bools, str]:
        learned, hidden = self._learned
        auditor = learned.copy()
        refused = np.zeros(len(wanted), dtype=bool)
        beside = ""
        cells = np.flatnonzero(wanted)
        own = dict(zip(cells.tolist(), _sets(self._new, wanted, self.atoms), strict=True))
        order = sorted(own, key=lambda cell: -int(self._weights[own[cell]].sum()))
        for cell in order:
            require_time()
            if not len(own[cell]):
                continue  # an empty cell tells of nobody
            decision = auditor.decide(own[cell])
            if not decision.safe:
                refused[cell] = True
                continue
            if decision.known:
                continue
            named = next((n for n, inside in hidden if np.array_equal(inside, own[cell])), "")
            if named:
                refused[cell], beside = True, named
                continue
            auditor.accept(decision)
        for name, inside in hidden:
            if auditor.decide(inside).known:
                # Some combination of told cells gives a withheld one: the smallest are taken back.
                beside = name
                refused |= self._touching(wanted & ~refused, inside)
        return refused, beside or (self._told[0].name if self._told else "")

    def _touching(self, wanted: Bools, inside: Ints) -> Bools:
        """Return the cells that hold some but not all of a set, or lie within it."""
        found = np.zeros(len(wanted), dtype=bool)
        mine = set(inside.tolist())
        total = len(np.unique(self.atoms))
        for cell, atoms in zip(
            np.flatnonzero(wanted).tolist(), _sets(self._new, wanted, self.atoms), strict=True
        ):
            share = mine.intersection(atoms.tolist())
            found[cell] = bool(share) and len(atoms) < total and len(atoms) <= 2 * len(mine)
        return found


def require_space(atoms: int, told: int, *, most: int = _MOST_BYTES) -> None:
    """Refuse to decide exactly on more told sums and atoms than memory holds.

    >>> require_space(1_000, 1_000)
    """
    needed = 8 * atoms * min(atoms, told)
    if needed > most:
        raise InfeasibleError(
            f"earlier releases tell {told:,} sums over {atoms:,} groups of records: too many to "
            "decide exactly what they tell together with this one, and simpler ways did not show it",
            code="too-many-atoms",
            hint="tabulate by fewer or coarser attributes, withhold more cells (a higher minimum "
            "frequency), or release with differential privacy",
            atoms=atoms,
            told=told,
        )


def _located(
    then: Roster, mine: LinearFacts | None, roster: Roster, theirs: LinearFacts | None, near: bool
) -> Ints:
    """Return where records of a snapshot stand in another with the same amount, or nearly it."""
    is_told = (
        mine is not None
        and theirs is not None
        and len(mine.identities) == len(then)
        and len(theirs.identities) == len(roster)
    )
    if mine is None or theirs is None or not is_told:
        return then.locate(roster)
    place = locate_marks(mine.identities, theirs.identities)
    if not near or not mine.near.size or not theirs.near.size:
        return place
    for scale in range(2):
        here = np.flatnonzero(place < 0)
        there = np.setdiff1d(np.arange(len(roster)), place)
        found = locate_marks(mine.near[scale][here], theirs.near[scale][there])
        here, there = here[found >= 0], there[found[found >= 0]]
        same = then.units[here] == roster.units[there]
        place[here[same]] = there[same]
    return place


def cell_pairs(facts: LinearFacts) -> tuple[Ints, Ints]:
    """Return pairs of a cell of the facts and a combination of codes that counts into it."""
    dimensions = facts.dimensions
    sizes = [len(dimension.codes) for dimension in dimensions]
    keys, which = incidence(facts.combinations, [ancestors(d) for d in dimensions], sizes)
    table = Table(dimensions, facts.codes.astype(np.int32), facts.lower)
    cell = table.find(keys)
    return cell[cell >= 0], which[cell >= 0]


def _cells(name: str, facts: LinearFacts, parts: Ints) -> _Told:
    return _Told(name, parts, cell_pairs(facts), facts.exact, facts.withheld, facts.k)


def _leaves(told: _Told, atoms: Ints) -> sparse.csr_matrix:
    """Return which atoms each part of a release has."""
    inside = told.parts >= 0
    size = int(max(told.pairs[1].max(initial=-1), told.parts.max(initial=-1))) + 1
    width = int(atoms.max(initial=-1)) + 1
    both = np.unique(told.parts[inside] * width + atoms[inside])
    shape = (size, width)
    return sparse.csr_matrix((np.ones(len(both)), (both // width, both % width)), shape=shape)


def _parts(told: _Told, chosen: Bools, size: int) -> sparse.csr_matrix:
    """Return which parts each chosen cell has."""
    cell, part = told.pairs
    wanted = chosen[cell]
    place = np.cumsum(chosen) - 1
    data = np.ones(int(wanted.sum()))
    return sparse.csr_matrix(
        (data, (place[cell[wanted]], part[wanted])), shape=(int(chosen.sum()), size)
    )


def _rows(told: _Told, chosen: Bools, atoms: Ints) -> sparse.csr_matrix:
    """Return what the chosen cells tell over atoms."""
    leaves = _leaves(told, atoms)
    return told_rows(_parts(told, chosen, leaves.shape[0]), leaves)


def cells_over(told: _Told, chosen: Bools, atoms: Ints) -> sparse.csr_matrix:
    """Return the chosen cells, each with its atoms."""
    leaves = _leaves(told, atoms)
    return sparse.csr_matrix(_parts(told, chosen, leaves.shape[0]) @ leaves)


def _sets(told: _Told, chosen: Bools, atoms: Ints) -> list[Ints]:
    """Return for each chosen cell the atoms in it."""
    inside = told.parts >= 0
    both = np.unique(np.stack([told.parts[inside], atoms[inside]], axis=1), axis=0)
    size = int(max(told.pairs[1].max(initial=-1), both[:, 0].max(initial=-1))) + 1
    start = np.searchsorted(both[:, 0], np.arange(size + 1))
    cell, part = told.pairs
    wanted = chosen[cell]
    cell, part = cell[wanted], part[wanted]
    order = np.argsort(cell, kind="stable")
    cell, part = cell[order], part[order]
    ends = np.searchsorted(cell, np.arange(len(chosen) + 1))
    found = []
    for one in np.flatnonzero(chosen):
        parts = part[ends[one] : ends[one + 1]]
        several = [both[start[p] : start[p + 1], 1] for p in parts.tolist()]
        found.append(np.unique(np.concatenate(several)) if several else np.zeros(0, np.int64))
    return found
