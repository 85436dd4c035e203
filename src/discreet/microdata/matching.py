"""The cheapest one-to-one matching of many points, proven: few candidates, prices, then a check of all.

Each person first has a few nearest spots as candidates. Shortest augmenting paths match them at
least cost and leave a price on every person and spot. A pair that is not among the candidates could
make the matching cheaper only if it costs less than its two prices: such pairs are looked for among
all, become candidates, and the matching is mended, until there are none. Then no matching is cheaper.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from discreet.compiling import Array, kernel
from discreet.progress import Progress, silent

__all__ = ["cheapest"]

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

#: Candidates of each person to begin with, and how many more may come at a time.
_CANDIDATES = 24
_GROUPS = 32
#: Auctions raise prices by no less than this share of the largest cost.
_SMALLEST_STEP = 1e-9
#: Distances held at once.
_BLOCK = 1 << 21


def cheapest(
    people: Numbers, spots: Numbers, room: Places, *, progress: Progress = silent
) -> Places:
    """Return the spot of each person in a matching of least total squared distance.

    Each spot takes as many people as it has room; the room must suffice for all.

    >>> people, spots = np.array([[0.0], [1.0], [2.0]]), np.array([[0.9], [1.1], [1.2]])
    >>> cheapest(people, spots, np.ones(3, dtype=np.int64)).tolist()
    [0, 1, 2]
    """
    task = _Task.of(people, spots, room)
    if (room == 1).all():
        # Prices that are nearly right, by auctions with smaller and smaller steps.
        step = float(task.costs.max()) / 4
        least = float(np.median(task.costs.min(axis=1))) / 200
        # A step must change prices: one below their rounding would be bid without end.
        least = max(least, _SMALLEST_STEP * step) if least > 0 else 0.0
        while step > least > 0:
            step = max(step / 5, least)
            _auction(task.candidates, task.costs, task.many, task.worth, step)
        _cheapest_prices(task.candidates, task.costs, task.many, task.price, task.worth)
    waiting = np.arange(len(people))
    stale = np.ones(len(people), dtype=bool)
    while waiting.size:
        before = task.price.copy()
        _augment_all(waiting, *task.arrays())
        stale |= task.price > before
        progress("matching", int((~stale).sum()), len(people))
        waiting = task.mend(np.flatnonzero(stale))
        stale[:] = False
        stale[waiting] = True
    return task.match


@dataclasses.dataclass(eq=False)
class _Task:
    """The matching so far: candidates with their costs, prices, and who is where."""

    people: Numbers
    spots: Numbers
    room: Places
    candidates: Places
    costs: Numbers
    many: Places
    price: Numbers
    worth: Numbers
    match: Places
    used: Places
    links: Places

    @classmethod
    def of(cls, people: Numbers, spots: Numbers, room: Places) -> _Task:
        size, width = len(people), min(_CANDIDATES, len(spots))
        # One candidate more, from a matching that is possible: so there is one among candidates.
        found = np.concatenate(
            [_nearest(people, spots, width), _in_order(people, spots, room)[:, None]], axis=1
        )
        costs = ((people[:, None, :] - spots[found]) ** 2).sum(axis=2)
        # First at the head of each spot's list, then the next and the previous person in it.
        links = np.full((3, max(size, len(spots))), -1, np.int64)
        return cls(
            people,
            spots,
            room,
            found,
            costs,
            np.full(size, width + 1),
            costs.min(axis=1),
            np.zeros(len(spots)),
            np.full(size, -1),
            np.zeros(len(spots), np.int64),
            links,
        )

    def arrays(self) -> tuple[object, ...]:
        return (
            self.candidates,
            self.costs,
            self.many,
            self.room,
            self.price,
            self.worth,
            self.match,
            self.used,
            self.links,
        )

    def mend(self, rows: Places) -> Places:
        """Look at all pairs of some people; give better ones to who lacks them and free them."""
        freed = []
        lengths = (self.spots**2).sum(axis=1) - self.worth
        largest = float(np.abs(lengths).max())
        twice = -2.0 * self.spots.T
        width = -(-len(self.spots) // _GROUPS) * _GROUPS
        step = max(1, _BLOCK // width)
        for start in range(0, rows.size, step):
            some = rows[start : start + step]
            own = (self.people[some] ** 2).sum(axis=1)
            reduced = np.full((some.size, width), np.inf)
            np.matmul(self.people[some], twice, out=reduced[:, : len(self.spots)])
            reduced[:, : len(self.spots)] += lengths
            # The best of each of many groups of spots: quicker to find than the best of all.
            groups = reduced.reshape(some.size, _GROUPS, -1)
            best = groups.argmin(axis=2)
            value = np.take_along_axis(groups, best[:, :, None], axis=2)[:, :, 0]
            best += np.arange(_GROUPS) * groups.shape[2]
            # Prices are differences of costs up to this size, and no more exact than they are.
            slack = 1e-10 * (1.0 + own + largest)
            helps = value < (self.price[some] - slack - own)[:, None]
            short = np.flatnonzero(helps.any(axis=1))
            if not short.size:
                continue
            self._add(some[short], np.where(helps, best, -1)[short])
            freed.append(some[short])
        return np.concatenate(freed) if freed else np.empty(0, np.int64)

    def _add(self, rows: Places, best: Places) -> None:
        needed = int(self.many[rows].max()) + best.shape[1]
        if needed > self.candidates.shape[1]:
            grown = needed + 2 * _GROUPS - self.candidates.shape[1]
            self.candidates = np.pad(self.candidates, ((0, 0), (0, grown)))
            self.costs = np.pad(self.costs, ((0, 0), (0, grown)))
        costs = ((self.people[rows][:, None, :] - self.spots[best]) ** 2).sum(axis=2)
        _extend(rows, best, costs, *self.arrays())


def _in_order(people: Numbers, spots: Numbers, room: Places) -> Places:
    """Match people and spots in the order of the direction in which the spots spread most."""
    centred = spots - spots.mean(axis=0)
    direction = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    seats = np.repeat(np.argsort(spots @ direction), room[np.argsort(spots @ direction)])
    found = np.empty(len(people), np.int64)
    found[np.argsort(people @ direction)] = seats[: len(people)]
    return found


def _nearest(people: Numbers, spots: Numbers, many: int) -> Places:
    if spots.shape[1] <= 12:
        from scipy.spatial import cKDTree

        found = cKDTree(spots).query(people, k=many, workers=-1)[1]
        return np.asarray(found, dtype=np.int64).reshape(len(people), many)
    lengths = (spots**2).sum(axis=1)
    found = np.empty((len(people), many), np.int64)
    step = max(1, _BLOCK // len(spots))
    for start in range(0, len(people), step):
        away = lengths - 2.0 * (people[start : start + step] @ spots.T)
        found[start : start + step] = np.argpartition(away, many - 1, axis=1)[:, :many]
    return found


@kernel
def _auction(candidates: Array, costs: Array, many: Array, worth: Array, step: float) -> None:
    """Let people outbid each other for spots for one until everybody has one."""
    size = many.size
    owner = np.full(worth.size, -1, np.int64)
    waiting = np.arange(size)
    left = size
    while left > 0:
        left -= 1
        row = waiting[left]
        best, second, chosen = np.inf, np.inf, -1
        for place in range(many[row]):
            spot = candidates[row, place]
            value = costs[row, place] - worth[spot]
            if value < best:
                if spot != chosen:
                    second = best
                best, chosen = value, spot
            elif value < second and spot != chosen:
                second = value
        if second == np.inf:
            second = best
        worth[chosen] -= second - best + step
        if owner[chosen] >= 0:
            waiting[left] = owner[chosen]
            left += 1
        owner[chosen] = row


@kernel
def _cheapest_prices(
    candidates: Array, costs: Array, many: Array, price: Array, worth: Array
) -> None:
    for row in range(many.size):
        least = np.inf
        for place in range(many[row]):
            least = min(least, costs[row, place] - worth[candidates[row, place]])
        price[row] = least


@kernel
def _leave(person: int, match: Array, used: Array, links: Array) -> None:
    """Take a person out of their spot's list."""
    spot = match[person]
    if spot < 0:
        return
    after, before = links[1, person], links[2, person]
    if before >= 0:
        links[1, before] = after
    else:
        links[0, spot] = after
    if after >= 0:
        links[2, after] = before
    used[spot] -= 1
    match[person] = -1


@kernel
def _enter(person: int, spot: int, match: Array, used: Array, links: Array) -> None:
    """Put a person at the head of a spot's list."""
    head = links[0, spot]
    links[1, person], links[2, person], links[0, spot] = head, -1, person
    if head >= 0:
        links[2, head] = person
    used[spot] += 1
    match[person] = spot


@kernel
def _extend(
    rows: Array,
    best: Array,
    new: Array,
    candidates: Array,
    costs: Array,
    many: Array,
    _room: Array,
    price: Array,
    worth: Array,
    match: Array,
    used: Array,
    links: Array,
) -> None:
    """Add candidates; the person's price falls to the cheapest, and they must look again."""
    for place in range(rows.size):
        row = rows[place]
        for position in range(best.shape[1]):
            spot = best[place, position]
            known = spot < 0
            for other in range(many[row]):
                known |= candidates[row, other] == spot
            if not known:
                candidates[row, many[row]] = spot
                costs[row, many[row]] = new[place, position]
                many[row] += 1
            if spot >= 0:
                price[row] = min(price[row], new[place, position] - worth[spot])
        _leave(row, match, used, links)


@kernel
def _push(heap: Array, keys: Array, size: int, item: int, key: float) -> Array:
    place = size
    while place > 0:
        above = (place - 1) // 2
        if keys[above] <= key:
            break
        heap[place], keys[place] = heap[above], keys[above]
        place = above
    heap[place], keys[place] = item, key
    return size + 1


@kernel
def _pop(heap: Array, keys: Array, size: int) -> Array:
    size -= 1
    item, key = heap[size], keys[size]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        heap[place], keys[place] = heap[child], keys[child]
        place = child
    heap[place], keys[place] = item, key
    return size


@kernel
def _augment_all(
    waiting: Array,
    candidates: Array,
    costs: Array,
    many: Array,
    room: Array,
    price: Array,
    worth: Array,
    match: Array,
    used: Array,
    links: Array,
) -> None:
    """Match people who wait, each by the cheapest way of making room for them."""
    spots = room.size
    away = np.full(spots, np.inf)
    finder = np.empty(spots, np.int64)
    done = np.zeros(spots, np.bool_)
    touched = np.empty(spots, np.int64)
    # A person in the tree of paths, and how far away they were found.
    tree, found_at = np.empty(price.size, np.int64), np.empty(price.size)
    heap, keys = np.empty(1024, np.int64), np.empty(1024)
    for start in waiting:
        many_touched, in_tree, next_row, filled = 0, 1, 0, 0
        tree[0], found_at[0] = start, 0.0
        end = -1
        while True:
            while next_row < in_tree:  # look at the candidates of whoever was found last
                row, base = tree[next_row], found_at[next_row]
                next_row += 1
                if filled + many[row] > heap.size:
                    more = np.empty(2 * heap.size + many[row], np.int64)
                    more[:filled] = heap[:filled]
                    more_keys = np.empty(more.size)
                    more_keys[:filled] = keys[:filled]
                    heap, keys = more, more_keys
                for place in range(many[row]):
                    spot = candidates[row, place]
                    if done[spot]:
                        continue
                    # Rounding must not make a step shorter than nothing.
                    distance = base + max(costs[row, place] - price[row] - worth[spot], 0.0)
                    if distance < away[spot]:
                        if away[spot] == np.inf:
                            touched[many_touched] = spot
                            many_touched += 1
                        away[spot], finder[spot] = distance, row
                        filled = _push(heap, keys, filled, spot, distance)
            while done[heap[0]]:  # found again since, and nearer
                filled = _pop(heap, keys, filled)
            spot = heap[0]
            filled = _pop(heap, keys, filled)
            if used[spot] < room[spot]:
                end = spot
                break
            done[spot] = True
            person = links[0, spot]
            while person >= 0:
                tree[in_tree], found_at[in_tree] = person, away[spot]
                in_tree += 1
                person = links[1, person]
        least = away[end]
        for place in range(in_tree):
            price[tree[place]] += least - found_at[place]
        for place in range(many_touched):
            spot = touched[place]
            if done[spot]:
                worth[spot] += away[spot] - least
        while True:
            row = finder[end]
            old = match[row]
            _leave(row, match, used, links)
            _enter(row, end, match, used, links)
            if row == start:
                break
            end = old
        for place in range(many_touched):
            away[touched[place]] = np.inf
            done[touched[place]] = False
