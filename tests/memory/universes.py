"""Small universes: random releases about a few people, and all that can be computed from them.

Nothing here uses the auditor. What is told is a system of linear equations over the records; people
are looked at in every combination of fewer than k, and intervals are computed by another solver.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linprog

import discreet as dc
from discreet.ledger.memory import Memory, record_release

GROUPINGS = (["a"], ["b"], ["c"], ["a", "b"], ["b", "c"], ["a", "c"])


@dataclasses.dataclass
class World:
    """What an attacker holds: sums over records, and what nobody may compute."""

    k: int
    #: Records as (person, version); told sums as sets of records.
    records: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    values: list[float] = dataclasses.field(default_factory=list)
    told: list[set[int]] = dataclasses.field(default_factory=list)
    #: How many sums were told when each release began.
    ends: list[int] = dataclasses.field(default_factory=list)
    #: Sensitive cells: records, and the values below and above that must stay possible; without
    #: these, where the promise is only that it is not told.
    sensitive: list[tuple[set[int], float, float]] = dataclasses.field(default_factory=list)
    #: Classes of files: for each record its class in each file.
    classes: list[dict[int, Any]] = dataclasses.field(default_factory=list)

    def number(self, frame: pd.DataFrame) -> list[int]:
        """Return the numbers of a snapshot's records; a changed row is a new record."""
        found = []
        for row in frame.itertuples(index=False):
            key = (int(row.id), hash(tuple(row)))
            if key not in self.records:
                self.records.append(key)
                self.values.append(float(row.m))
            found.append(self.records.index(key))
        return found

    def matrix(self) -> np.ndarray:
        """Return one row for each told sum."""
        rows = np.zeros((len(self.told), len(self.records)))
        for place, inside in enumerate(self.told):
            rows[place, sorted(inside)] = 1.0
        return rows

    def isolated(self) -> list[tuple[int, ...]]:
        """Return groups of fewer than k people of whom releases tell together, and none alone.

        That one table alone tells two small cells in sum is a matter of its rules, not of memory.
        """
        rows = self.matrix()
        alone: set[tuple[int, ...]] = set()
        ends = [0, *self.ends, len(rows)]
        for start, end in itertools.pairwise(ends):
            alone.update(self._isolated(rows[start:end]))
        return [group for group in self._isolated(rows) if group not in alone]

    def _isolated(self, rows: np.ndarray) -> list[tuple[int, ...]]:
        if not len(rows):
            return []
        full = np.linalg.matrix_rank(rows)
        people = sorted({person for person, _ in self.records})
        found = []
        for person in people:  # any combination at all, so also how somebody changed
            others = [n for n, (owner, _) in enumerate(self.records) if owner != person]
            if np.linalg.matrix_rank(rows[:, others]) < full:
                found.append((person,))
        for size in range(2, self.k):
            for group in itertools.combinations(range(len(self.records)), size):
                row = np.zeros((1, len(self.records)))
                row[0, list(group)] = 1.0
                if np.linalg.matrix_rank(np.concatenate([rows, row])) == full:
                    found.append(group)
        return found

    def weaken(self, still: set[int] | None = None) -> None:
        """Ask of sensitive cells only that they are not told, of those that are not still there."""
        for place, (inside, low, high) in enumerate(self.sensitive):
            if still is None or not inside <= still:
                middle = (low + high) / 2
                self.sensitive[place] = (inside, middle, middle)

    def narrowed(self) -> int:
        """Return how many sensitive cells can be computed too closely."""
        rows = self.matrix()
        right = rows @ np.array(self.values)
        count = 0
        for inside, low, high in self.sensitive:
            goal = np.zeros(len(self.records))
            goal[sorted(inside)] = 1.0
            ends = []
            for sign in (1.0, -1.0):
                found = linprog(sign * goal, A_eq=rows, b_eq=right, bounds=(0, None))
                ends.append(sign * found.fun if found.status == 0 else sign * -np.inf)
            slack = 1e-6 * max(1.0, abs(high))
            if low == high:
                count += bool(ends[1] - ends[0] < slack)
            else:
                count += bool(ends[0] > low + slack or ends[1] < high - slack)
        return count

    def thin_classes(self) -> int:
        """Return how many joint classes have fewer than k people."""
        if not self.classes:
            return 0
        joint: dict[tuple[Any, ...], int] = {}
        for record in range(len(self.records)):
            if all(record in one for one in self.classes):
                key = tuple(one[record] for one in self.classes)
                joint[key] = joint.get(key, 0) + 1
        return sum(size < self.k for size in joint.values())

    @property
    def leaks(self) -> bool:
        """Whether anything is told that must not be."""
        return bool(self.isolated() or self.narrowed() or self.thin_classes())


def frame_of(rng: np.random.Generator, size: int, top: int = 20) -> pd.DataFrame:
    """Return a few people with amounts below a top."""
    return pd.DataFrame(
        {
            "id": np.arange(size),
            "a": rng.choice(list("xyz"), size),
            "b": rng.choice(list("pq"), size),
            "c": rng.choice(list("stu"), size),
            "m": rng.integers(1, top, size),
        }
    )


def changed(frame: pd.DataFrame, rng: np.random.Generator, top: int = 20) -> pd.DataFrame:
    """Return the people later: one has gone, come or changed."""
    later = frame.copy()
    way = rng.integers(3)
    if way == 0:
        return later.drop(index=int(rng.integers(len(later)))).reset_index(drop=True)
    if way == 1:
        later.loc[int(rng.integers(len(later))), "m"] += max(1, top // 4)
        return later
    new = frame_of(rng, 1, top).assign(id=100)
    return pd.concat([later, new], ignore_index=True)


def dataset(frame: pd.DataFrame) -> dc.Dataset:
    """Return the people as a dataset with a unit and hierarchies."""
    flat = dc.Hierarchy.flat
    return dc.read(
        frame,
        roles={"id": "identifier", "a": "quasi", "b": "quasi", "c": "quasi", "m": "confidential"},
        hierarchies={
            "a": flat(list("xyz"), total="*"),
            "b": flat(list("pq"), total="*"),
            "c": flat(list("stu"), total="*"),
        },
        unit="id",
        name="people",
    )


def recorded(release: Any, ledger: dc.Ledger, snapshot: str) -> None:
    """Record a release as `write` does, without the files."""
    with Memory(ledger, release.records(), snapshot=snapshot) as memory:
        record_release(
            memory,
            kind="test",
            title=release.title(),
            digest=str(ledger.last("people", "release")),
            facts=list(release.discloses(memory)),
            audience="public",
        )


def tell_table(world: World, frame: pd.DataFrame, release: Any) -> None:
    """Take the published cells of a table into the world."""
    numbers = world.number(frame)
    table, done = release.table, release.protected
    marked = table.status
    for cell in range(len(table)):
        chosen = np.ones(len(frame), dtype=bool)
        for name, code in zip(table.by, table.labels(cell), strict=True):
            if code != table.dimensions[table.by.index(name)].total:
                chosen &= (frame[name] == code).to_numpy()
        inside = {numbers[place] for place in np.flatnonzero(chosen)}
        if not inside:
            continue
        if not done.withheld[cell]:
            world.told.append(inside)
        elif marked is not None and marked[cell] == 2 and table.lower is not None:
            value = float(table.value[cell])
            world.sensitive.append(
                (inside, value - float(table.lower[cell]), value + float(table.upper[cell]))
            )


def tell_file(world: World, frame: pd.DataFrame, release: Any, k: int) -> None:
    """Take the classes of a file into the world, and the sums of its classes."""
    del k
    numbers = world.number(frame)
    from discreet.microdata.pair import Pair

    origin = Pair.of(release.original, release).origin.tolist()
    keys = release.dataset.arrow(list(release.quasi)).to_pylist()
    classes: dict[Any, set[int]] = {}
    for place, row in zip(origin, keys, strict=True):
        classes.setdefault(tuple(row.values()), set()).add(numbers[place])
    world.told += list(classes.values())
    world.classes.append({n: key for key, inside in classes.items() for n in inside})


def tell_answer(world: World, frame: pd.DataFrame, name: str, rows: pd.DataFrame) -> None:
    """Take the answered groups of a question into the world."""
    numbers = world.number(frame)
    for value in rows[name]:
        inside = np.flatnonzero((frame[name] == value).to_numpy())
        world.told.append({numbers[place] for place in inside})


def play(seed: int, *, remember: bool, top: int = 20, attacker: str = "outsider") -> World:
    """Release two to five things about a few people, with or without memory."""
    rng = np.random.default_rng(seed)
    frame = frame_of(rng, int(rng.integers(5, 9)), top)
    k = int(rng.integers(2, 4))
    if attacker == "contributors":
        k = 3  # of two, each knows the other
    world = World(k)
    rules = [dc.MinimumFrequency(k), dc.PPercent(10)]
    method = dc.Suppression(attacker=attacker, effort="fast")
    turn = int(rng.integers(2, 6))
    over_time = bool(rng.integers(2))
    answered = bool(rng.integers(2))
    with dc.open_ledger() as ledger:
        snapshot = "first"
        for step in range(turn):
            if over_time and step == turn - 1 and not answered:
                frame, snapshot = changed(frame, rng, top), "second"
                world.weaken(set(world.number(frame)))
            people = dataset(frame)
            memory: dict[str, Any] = {"ledger": ledger, "snapshot": snapshot} if remember else {}
            kind = int(rng.integers(4))
            by = list(GROUPINGS[int(rng.integers(len(GROUPINGS)))])
            world.ends.append(len(world.told))
            try:
                if kind == 3 and answered:
                    book = ledger if remember else ":memory:"
                    name = by[0]
                    with dc.Gateway(
                        people,
                        guard=dc.Restriction(k=k),
                        ledger=book,
                        snapshot=memory.get("snapshot"),
                    ) as gate:
                        answer = gate.ask(f"SELECT {name}, SUM(m) AS s FROM people GROUP BY {name}")
                    if not answer.refused:
                        tell_answer(world, frame, name, answer.frame)
                        world.weaken()
                elif kind == 2:
                    way = dc.Generalization(suppression=0.3, metric="loss")
                    file = dc.anonymize(people, [dc.KAnonymity(k)], quasi=by, method=way, **memory)
                    if remember:
                        recorded(file, ledger, snapshot)
                    tell_file(world, frame, file, k)
                else:
                    table = dc.tabulate(people, by=by, measure="m")
                    release = table.protect(rules, method, **memory)
                    if remember:
                        recorded(release, ledger, snapshot)
                    tell_table(world, frame, release)
            except (dc.RefusedError, dc.InfeasibleError, dc.InputError):
                continue
    return world
