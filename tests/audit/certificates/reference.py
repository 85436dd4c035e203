"""The search for product certificates, written out with lists and dictionaries.

Slow and short: no hash table, no fixed arrays, no sum broken off early. Same order of trials and same
limits as the kernels, so that results are equal to the last cell.
"""

from __future__ import annotations

import itertools
import math

NEVER, HOPE, SWEEPS, LONGEST = 1e6, 4.0, 2, 4096


class Tree:
    """One attribute: the parent of each code, and the leaves below it in their order."""

    def __init__(self, parents):
        self.parent = [int(p) for p in parents]
        self.children = [[c for c, p in enumerate(self.parent) if p == code] for code in range(len(self.parent))]  # fmt: skip

    def leaves(self, code):
        below = [leaf for child in self.children[code] for leaf in self.leaves(child)]
        return below or [code]

    def climb(self, code, top, sign):
        """Return the codes from one up to but without the top, each with a sign."""
        if code in (top, -1):
            return []
        return [(code, sign), *self.climb(self.parent[code], top, sign)]


class Search:
    """What `corners` finds, from its arguments."""

    def __init__(self, table, demands, room, *, withheld, live, price, free, knowledge=None):
        self.trees = [Tree(d.parents[0]) for d in table.dimensions]
        self.codes = [tuple(map(int, row)) for row in table.codes]
        self.place = {codes: cell for cell, codes in enumerate(self.codes)}
        self.target, self.amount = [x.tolist() for x in demands]
        self.down, self.up = [x.tolist() for x in room]
        self.withheld, self.live, self.free = withheld.tolist(), live.tolist(), free.tolist()
        self.rate = [f if w else p for f, w, p in zip(self.free, self.withheld, price, strict=True)]
        self.known = [[] for _ in self.codes]
        self.same, self.owner = list(range(len(self.codes))), [-1] * len(self.codes)
        self.informed = False
        if knowledge is not None:
            self.same, self.owner = knowledge.same.tolist(), knowledge.owner.tolist()
            entries = zip(
                knowledge.cell, knowledge.who, knowledge.fall, knowledge.sole, strict=True
            )
            for cell, who, fall, sole in entries:
                self.known[cell].append((int(who), float(fall), bool(sole)))
                self.informed = True
        self.met = [False] * len(self.target)
        self.certificates = []

    def run(self):
        demand_of = {}
        for d, (cell, amount) in enumerate(zip(self.target, self.amount, strict=True)):
            demand_of[cell, amount > 0] = d
        for d in sorted(range(len(self.target)), key=lambda d: (-abs(self.amount[d]), d)):
            if self.met[d]:
                continue
            found = self.certified(self.target[d], self.amount[d])
            if found is None:
                continue
            self.certificates += found
            self.met[d] = True
            for certificate in reversed(found):
                self.use(certificate, demand_of)
        return self

    def certified(self, cell, move):
        """Return one certificate, or two of which every contributor believes one."""
        first, cost = self.corner(cell, move, ())
        if cost >= NEVER:
            return None
        barred = self.attackers(cell, first)
        if len(barred) > 256:
            return None
        if not barred:
            return [first]
        second, cost = self.corner(cell, move, barred)
        return None if cost >= NEVER else [first, second]

    def use(self, certificate, demand_of):
        """Withhold the cells of a certificate, and mark what else it meets."""
        mirrored = True
        for cell, move in certificate:
            if not self.withheld[cell]:
                self.withheld[cell], self.rate[cell] = True, self.free[cell]
            mirrored = mirrored and not (move > self.down[cell] or -move > self.up[cell])
        for cell, move in certificate:
            for flip in (1, -1) if mirrored else (1,):
                wish = demand_of.get((cell, flip * move > 0))
                if wish is None or self.met[wish]:
                    continue
                enough = abs(self.amount[wish]) <= abs(move) * (1 + 1e-9)
                turned = [(other, flip * step) for other, step in certificate]
                if enough and not self.attackers(cell, turned):
                    self.met[wish] = True

    def attackers(self, target, certificate):
        """Return the contributors who know that a deviation is not true."""
        return [
            who
            for cell, move in certificate
            if self.same[cell] != self.same[target]
            for who, fall, sole in self.known[cell]
            if who != self.owner[target] and (sole or move < -fall - 1e-9 * max(1.0, abs(move)))
        ]

    def price(self, codes, move, barred, target):
        cell = self.place.get(codes, -1)
        if cell < 0 or not self.live[cell]:
            return NEVER
        if abs(move) > (self.up[cell] if move > 0 else self.down[cell]) * (1 + 1e-9):
            return NEVER
        refuted = any(
            (sole or move < -fall * (1 + 1e-9) - 1e-9) and who in barred
            for who, fall, sole in self.known[cell]
        )
        return NEVER if self.same[cell] != self.same[target] and refuted else self.rate[cell]

    def cost(self, product, move, barred, target):
        """Return the cells of a product with their moves, the first attribute fastest, and cost."""
        cells, total = [], 0.0
        for chosen in itertools.product(*reversed(product)):
            codes = tuple(code for code, _ in reversed(chosen))
            step = math.prod(sign for _, sign in chosen) * move
            total += self.price(codes, step, barred, target)
            cells.append((self.place.get(codes, -1), step))
        return cells, total

    def corner(self, target, move, barred):
        """Return the cheapest product found around a cell, and its cost."""
        own, best, least = self.codes[target], [], NEVER

        def cost(part, place):
            crossed = [*product[:place], part, *product[place + 1 :]]
            return self.cost(crossed, move, barred, target)[1]

        for start in range(len(own)):
            product, below, before = [[(code, 1)] for code in own], [0] * len(own), math.inf
            for _ in range(SWEEPS + 1):
                for turn in range(len(own)):
                    place = (start + turn) % len(own)
                    tree, code = self.trees[place], own[place]
                    if tree.children[code]:  # a total: down to a leaf, what is beside it kept
                        aside = product[place][1 + below[place] :]
                        down = self.descended(tree, code, place, target, cost)
                        product[place], below[place] = [(code, 1), *down, *aside], len(down)
                    part = self.chosen(tree, code, place, target, cost)
                    product[place] = [*product[place][: 1 + below[place]], *part]
                cells, now = self.cost(product, move, barred, target)
                if len(cells) > LONGEST or now >= least:
                    now = NEVER
                if now < least:
                    best, least = cells, now
                if now >= before:
                    break
                before = now
            if least < 1e-2:
                break
        return best, least

    @staticmethod
    def chosen(tree, code, place, target, cost):
        """Return where the deviation of one attribute ends: at another leaf, or at the total."""
        best, least, leaf_found = [], HOPE * NEVER, False
        inner, top = code, tree.parent[code]
        while top >= 0:
            below, within = tree.leaves(top), set(tree.leaves(inner))
            if len(below) > len(within):
                step = max(1, len(below) // (40 if top == tree.parent[code] else 12))
                for leaf in below[target * 7 % step :: step]:
                    if leaf in within:
                        continue
                    part = tree.climb(tree.parent[code], top, 1) + tree.climb(leaf, top, -1)
                    if (now := cost(part, place)) < least:
                        best, least, leaf_found = part, now, True
                if leaf_found and least < NEVER:
                    break
            inner, top = top, tree.parent[top]
        part = tree.climb(tree.parent[code], -1, 1)
        return part if cost(part, place) < least else best

    @staticmethod
    def descended(tree, code, place, target, cost):
        """Return the way down from a total to the leaf where that is cheapest."""
        best, least = [], HOPE * NEVER
        below = tree.leaves(code)
        step = max(1, len(below) // 12)
        for leaf in below[target * 5 % step :: step]:
            part = tree.climb(leaf, code, 1)
            if (now := cost(part, place)) < least:
                best, least = part, now
        return best


def believed(targets, rows, certificates, same, owner, pool, known):
    """Return at which entry the last attacker on a target is answered.

    `certificates` are lists of cells with moves; `known` holds for each cell what contributors know
    of it: who, how far they know it can fall, and whether it is theirs alone.
    """

    def doubters(row, target):
        return {
            who
            for cell, move in certificates[row]
            if same[cell] != same[target]
            for who, fall, sole in known[cell]
            if sole or move < -fall - 1e-9 * max(1.0, abs(move))
        }

    met, left = [False] * len(targets), {}
    for at, (target, row) in enumerate(zip(targets, rows, strict=True)):
        before = left.get(target)
        doubt = doubters(row, target) - {owner[target], pool[target]}
        left[target] = doubt if before is None else before & doubters(row, target)
        met[at] = not left[target] and before != set()
    return met
