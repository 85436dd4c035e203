"""The local search of microaggregation, written out: groups are lists, costs are differences.

Every cost is the change of the sum of squares of the groups concerned, computed anew. The order in
which records and groups are looked at is that of the kernels, which the result depends on.
"""

from __future__ import annotations

import math

import numpy as np


def squares(points, members):
    """Return the sum of squared distances to the centre of a group."""
    if len(members) == 0:
        return 0.0
    part = points[list(members)]
    return float(((part - part.mean(axis=0)) ** 2).sum())


class Partition:
    """Groups as lists of records; a record that leaves makes place for the last of its group."""

    def __init__(self, points, labels, k):
        self.points, self.k = points, k
        self.groups = [[] for _ in range(max(len(points) // k, 1) + 1)]
        self.label = [int(g) for g in labels]
        for point, group in enumerate(self.label):
            self.groups[group].append(point)
        self.most = 3 * k - 1  # no group grows beyond by a move

    def move(self, point, target):
        members = self.groups[self.label[point]]
        members[members.index(point)] = members[-1]
        members.pop()
        self.groups[target].append(point)
        self.label[point] = target

    def cost(self, changes):
        """Return what the error changes by if records went to other groups."""
        after = {g: [*self.groups[g]] for p, t in changes for g in (self.label[p], t)}
        before = sum(squares(self.points, self.groups[g]) for g in after)
        for point, target in changes:
            after[self.label[point]].remove(point)
            after[target].append(point)
        return sum(squares(self.points, members) for members in after.values()) - before

    def best_change(self, point, near):
        """Return the best move or exchange with a neighbour's group, if any helps."""
        home, best, found = self.label[point], -1e-12, None
        for group in dict.fromkeys(self.label[other] for other in near[point]):
            if group == home:
                continue
            ways = [[(point, group), (other, home)] for other in self.groups[group]]
            if len(self.groups[home]) > self.k and len(self.groups[group]) < self.most:
                ways.insert(0, [(point, group)])
            for changes in ways:
                if (cost := self.cost(changes)) < best:
                    best, found = cost, changes
        return found

    def split_large(self):
        """Split groups of 2k or more while there are free labels; return how many."""
        done = 0
        for members in self.groups:
            if len(members) < 2 * self.k:
                continue
            free = next((g for g, other in enumerate(self.groups) if not other), None)
            if free is None:
                return done
            inside = [*members]
            away = [((self.points[p] - self.points[inside[0]]) ** 2).sum() for p in inside]
            one = inside[int(np.argmax(away))]
            away = [((self.points[p] - self.points[one]) ** 2).sum() for p in inside]
            for place in np.argsort(away)[: self.k]:
                self.move(inside[place], free)
            done += 1
        return done

    def dissolve(self, group, near):
        """Send every member of a group where it costs least, unless that hurts; return if done."""
        before = [*self.groups[group]]
        change = -squares(self.points, before)
        for point in before:
            costs = {
                g: squares(self.points, [*self.groups[g], point])
                - squares(self.points, self.groups[g])
                for g in dict.fromkeys(self.label[other] for other in near[point])
                if g != group and 0 < len(self.groups[g]) < self.most
            }
            if not costs:
                change = math.inf
                break
            target = min(costs, key=costs.__getitem__)
            change += costs[target]
            self.move(point, target)
        if change < -1e-12:
            return True
        for point in before:
            if self.label[point] != group:
                self.move(point, group)
        return False


def descend(points, labels, k, near, sweeps):
    """Return the partition after all changes that help."""
    state = Partition(points, labels, k)
    waiting, changes = [True] * len(points), 0
    for sweep in range(sweeps):
        before = changes
        for point in range(len(points)):
            if not waiting[point]:
                continue
            waiting[point] = False
            found = state.best_change(point, near)
            if found is None:
                continue
            home, target = state.label[point], found[0][1]
            exchange(state, found)
            changes += 1
            for member in (*state.groups[home], *state.groups[target]):
                for other in (member, *near[member][:6]):
                    waiting[other] = True
        if sweep < 20:
            changes += state.split_large()
            for group in range(len(state.groups)):
                inside = [*state.groups[group]]
                if inside and state.dissolve(group, near):
                    changes += 1
                    for point in inside:
                        waiting[point] = True
            changes += state.split_large()
        if changes == before:
            break
    return state.label


def exchange(state, changes):
    """Take records out of both groups before they enter the other."""
    homes = [state.label[point] for point, _ in changes]
    if len(changes) == 1:
        state.move(*changes[0])
        return
    for (point, _), home in zip(changes, homes, strict=True):
        members = state.groups[home]
        members[members.index(point)] = members[-1]
        members.pop()
    for point, target in changes:
        state.groups[target].append(point)
        state.label[point] = target
