"""A short verifier of published tables, with reading, adding up and counting of its own.

It imports nothing of the product: rows of a published file and the public hierarchies go in, the
interval in which each cell must lie comes out, by linear or integer programs over what is printed
and what the manual says of the method. Rules are counted again from the records.
"""

from __future__ import annotations

import csv
import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

OWN = {"value", "lower", "upper", "count", "status", "conf_status"}


class Published:
    """Cells as files print them, and the sums between them; several files are linked tables.

    `parents` has the hierarchies of every attribute, each as a mapping from code to parent.
    """

    def __init__(self, paths, parents):
        self.parents, self.by = parents, list(parents)
        self.rows, self.place = [], {}
        for path in [paths] if isinstance(paths, str | Path) else paths:
            with Path(path).open(newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    # An attribute that a file does not cross stands at its total.
                    codes = tuple(row.get(name, self.root(name)) for name in self.by)
                    if codes not in self.place:
                        self.place[codes] = len(self.rows)
                        self.rows.append(row)
                    elif row["value"] and not self.rows[self.place[codes]]["value"]:
                        self.rows[self.place[codes]] = row
        self.equations = self._equations()
        #: The equations that each cell is in.
        self.within = [[] for _ in self.rows]
        for number, (total, parts) in enumerate(self.equations):
            for cell in (total, *parts):
                self.within[cell].append(number)

    def root(self, name):
        parent = self.parents[name][0]  # empty where all codes were merged
        return next(iter(set(parent.values()) - set(parent)), "Total")

    def number(self, cell, column="value"):
        text = self.rows[cell].get(column) or ""
        return float(text) if text else math.nan

    def _equations(self):
        found = []
        for axis, name in enumerate(self.by):
            for parent in self.parents[name]:
                sums = defaultdict(list)
                for codes, cell in self.place.items():
                    above = parent.get(codes[axis])
                    if above:
                        sums[(*codes[:axis], above, *codes[axis + 1 :])].append(cell)
                found += [(self.place[t], parts) for t, parts in sums.items() if t in self.place]
        return found

    def fewest(self):
        """Return how many records each cell counts at least where every cell listed counts one."""
        least = np.ones(len(self.rows))
        for _ in self.by:  # totals of totals
            for total, parts in sorted(self.equations, key=lambda one: len(one[1])) * 3:
                least[total] = max(least[total], least[parts].sum())
        return least

    def interval(self, cell, lower, upper, *, whole):
        """Return the least and the greatest value of a cell in any table that fits.

        Sums of numbers that are printed with twelve digits fit up to a millionth.
        """
        size = len(self.rows)
        matrix = np.zeros((len(self.equations), size))
        for row, (total, parts) in enumerate(self.equations):
            matrix[row, total] += 1
            matrix[row, parts] -= 1
        slack = (
            0.0
            if whole
            else 1e-6 * max(1.0, float(np.max(np.abs(lower[np.isfinite(lower)]), initial=1)))
        )
        ends = []
        fixed = {
            "constraints": LinearConstraint(matrix, -slack, slack) if len(matrix) else (),
            "bounds": Bounds(lower, upper),
            "integrality": np.full(size, int(whole)),
            "options": {"time_limit": 60},
        }
        for sign in (1, -1):
            cost = np.zeros(size)
            cost[cell] = sign
            solved = milp(cost, **fixed)
            endless = solved.status == 3
            if solved.status == 4:  # the solver does not say whether no table fits or no end
                endless = milp(np.zeros(size), **fixed).x is not None
            if endless:
                ends.append(-sign * math.inf)
            else:
                assert solved.x is not None, f"no table fits what is printed: {solved.message}"
                ends.append(float(solved.x[cell]))
        return ends[0], ends[1]

    def enumerated(self, lower, upper, most=1500):
        """Return every table of whole numbers between the bounds, one per row, without any solver.

        None where more than so many steps would be needed.
        """
        found, steps = [], 0
        waiting = [(np.ceil(lower - 1e-9).tolist(), np.floor(upper + 1e-9).tolist(), None)]
        while waiting:
            steps += 1
            low, high, changed = waiting.pop()
            if not self._narrowed(low, high, changed):
                continue
            open_ = [cell for cell in range(len(low)) if low[cell] < high[cell]]
            if not open_:
                found.append(low)
                continue
            cell = min(open_, key=lambda c: high[c] - low[c])
            if steps > most or high[cell] == math.inf:
                return None
            for value in range(int(low[cell]), int(high[cell]) + 1):
                one = low.copy(), high.copy(), cell
                one[0][cell] = one[1][cell] = value
                waiting.append(one)
            if len(waiting) > most:
                return None
        return np.array(found)

    def _narrowed(self, low, high, changed=None):
        """Pass bounds on between totals and parts; whether any table can be left.

        With the cell that changed, if the bounds were passed on before.
        """
        start = range(len(self.equations)) if changed is None else self.within[changed]
        waiting = dict.fromkeys(start)
        while waiting:
            equation = waiting.popitem()[0]
            total, parts = self.equations[equation]
            least, greatest = 0.0, 0.0
            for part in parts:
                least += low[part]
                greatest += high[part]
            bottom, top = low[total], high[total]
            if least > bottom or greatest < top:
                low[total], high[total] = bottom, top = max(least, bottom), min(greatest, top)
                if bottom > top:
                    return False
                waiting.update(dict.fromkeys(self.within[total]))
            for part in parts:
                first, last = low[part], high[part]
                # Where the parts have no end together, they bound none of them from below.
                lowest = first if greatest == math.inf else bottom - greatest + last
                highest = top - least + first
                if lowest > first or highest < last:
                    low[part], high[part] = lowest, highest = max(lowest, first), min(highest, last)
                    if lowest > highest:
                        return False
                    least += lowest - first
                    greatest += 0.0 if greatest == math.inf else highest - last
                    waiting.update(dict.fromkeys(self.within[part]))
        return True

    def values(self):
        return np.array([self.number(cell) for cell in range(len(self.rows))])


def sums(published):
    """Return sums where means are printed with the numbers they are of."""
    count = np.array([published.number(cell, "count") for cell in range(len(published.rows))])
    return published.values() * count, count


def bounds(published, method, facts, *, counts, floor, omitted, value=None):
    """Return between what each cell lies by what is printed of it and the manual says."""
    value = published.values() if value is None else value
    name = method["name"]
    least = max(floor, 1.0) if counts and omitted else floor
    lower, upper = value.copy(), value.copy()
    if name == "intervals":
        hidden = np.isnan(value)
        printed = [np.array([published.number(c, end) for c in range(len(value))]) for end in OWN2]
        return np.where(hidden, printed[0], value), np.where(hidden, printed[1], value)
    if "rounding" in name:
        reach = facts["base"] * (0.5 if name == "conventional-rounding" else 1.0)
        lower, upper = np.maximum(value - reach, least), value + reach
    elif name == "cell-key" and counts:
        reach = method["deviation"]
        lower, upper = np.maximum(value - reach, least), value + reach
    elif name == "cell-key":
        most = method["most"] / 100
        ends = np.stack([value / (1 + most), value / (1 - most)])
        lower, upper = ends.min(axis=0), ends.max(axis=0)
    hidden = np.isnan(value)
    return np.where(hidden, least, lower), np.where(hidden, np.inf, upper)


OWN2 = ("lower", "upper")
CONFIDENCE = ("lower_95", "upper_95")


def ancestors(parents, code):
    """Return a code and everything above it, in any of the hierarchies."""
    found, queue = {code}, [code]
    while queue:
        one = queue.pop()
        for parent in parents:
            above = parent.get(one)
            if above and above not in found:
                found.add(above)
                queue.append(above)
    return found


def contributions(records, by, parents, measure):
    """Return for each combination of codes what each unit gives, by going through the records."""
    cells = defaultdict(Counter)
    for number, record in enumerate(records):
        combined = [()]
        for name in by:
            codes = ancestors(parents[name], record[name])
            combined = [(*start, code) for start in combined for code in codes]
        for codes in combined:
            cells[codes][record.get("unit", number)] += 1 if measure is None else record[measure]
    return cells


def require_private(published, evidence):
    """Assert of noise with differential privacy what its file can show: what is promised was asked for."""
    _require_additive_cube(published)
    epsilon = evidence["method"]["epsilon"]
    assert evidence["facts"]["promise"].startswith(
        f"ε-differential privacy with ε = {epsilon:g} for each contributor"
    )


def require_consistent(published, evidence, truth):
    """Assert of a consistent table what its file can show: whole numbers, and the loss by its noise.

    A contributor of k records changes each query by k at most, so that a scale of s costs k²/2s².
    """
    _require_additive_cube(published)
    value, facts = published.values(), evidence["facts"]
    assert (value == np.round(value)).all()
    assert (value >= 0).all()
    records = evidence["method"]["records"]
    spent = sum(records**2 / (2 * one["scale"] ** 2) for one in facts["measurements"])
    assert spent <= evidence["method"]["rho"] * (1 + 1e-9)
    assert abs(facts["rho"] - spent) <= 1e-9 * spent
    assert facts["epsilon"] >= _epsilon(spent, facts["delta"]) * (1 - 1e-6)
    names = {one["level"] for one in facts["measurements"]}
    assert names == set(facts["levels"]), "a level was published that was not measured"
    ends = [[published.number(c, end) for c in range(len(value))] for end in CONFIDENCE]
    assert (np.array(ends[0]) <= value).all()
    assert (value <= np.array(ends[1])).all()
    return int(((np.array(ends[0]) <= truth) & (truth <= np.array(ends[1]))).sum()), len(value)


def _epsilon(rho, delta):
    """The ε at δ that ρ amounts to (Canonne, Kamath and Steinke 2020, proposition 12), by a search."""
    alpha = 1 + np.geomspace(1e-4, 1e6, 400_000)
    losses = alpha * rho + np.log(1 / (alpha * delta)) / (alpha - 1) + np.log1p(-1 / alpha)
    return max(float(losses.min()), 0.0)


def _require_additive_cube(published):
    """Assert that no cell left out tells whether it is empty, and totals no more than their parts."""
    axes = [
        {code for parent in published.parents[name] for code in (*parent, *parent.values())}
        for name in published.by
    ]
    assert len(published.place) == math.prod(len(codes or {"Total"}) for codes in axes)
    value = published.values()
    assert np.isfinite(value).all()
    size = float(np.abs(value).max(initial=1.0))
    for total, parts in published.equations:
        assert abs(value[total] - value[parts].sum()) <= 1e-6 * max(size, 1.0)


def whole_group(found, codes, place, root, n):
    """Return how many more people a cell must lack; none where it does not hold nearly its group."""
    if codes[place] == root:
        return None
    group = len(found[(*codes[:place], root, *codes[place + 1 :])])
    missing = n - (group - len(found[codes]))
    return missing if missing > 0 and found[codes] else None


def levels(parts, rule, *, counts, codes=(), asked=frozenset()):
    """Return the protection levels of a cell by a rule, or None where it is not sensitive."""
    if rule["name"] == "zero-cells":
        is_zero = not any(parts.values()) and (bool(parts) or rule["empty"])
        return (0.0, rule["level"]) if is_zero else None
    if rule["name"] == "manual":
        if "/".join(codes) not in rule["cells"]:
            return None
        level = sum(abs(v) for v in parts.values()) * rule["range"] / 100
        return (max(level, 1.0),) * 2 if counts else (level, level)
    number, sizes = len(parts), sorted((abs(v) for v in parts.values()), reverse=True)
    total = sum(sizes)
    if rule["name"] == "minimum-frequency":
        if not 0 < number < rule["n"]:
            return None
        level = total * rule["range"] / 100
        return (max(level, 1.0),) * 2 if counts else (level, level)
    top = [*sizes, 0.0, 0.0]
    if rule["name"] == "p-percent":
        level = rule["p"] / 100 * top[0] - (total - top[0] - top[1])
    elif rule["name"] == "pq":
        level = rule["p"] / rule["q"] * top[0] - (total - top[0] - top[1])
    elif rule["name"] == "dominance":
        level = sum(sizes[: rule["n"]]) * 100 / rule["k"] - total
    elif rule["name"] == "request":
        largest = max((abs(v) for unit, v in parts.items() if unit in asked), default=0.0)
        level = largest * 100 / rule["share"] - total
    else:
        return None
    return (level, level) if level > 1e-9 * max(1.0, total) else None
