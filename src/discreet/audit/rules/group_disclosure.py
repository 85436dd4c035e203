"""Group disclosure: what all, or nearly all, of a group have is known of each of them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.audit.rules._base import Bools, Floats, Rule, Verdict, magnitude, verdict
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.table import Table

__all__ = ["GroupDisclosure"]

#: Of an attribute with many codes so many that a group lacks are protected with it.
_LACKING = 2


@dataclasses.dataclass(frozen=True)
class GroupDisclosure(Rule):
    """A cell is sensitive when it holds all, or all but fewer than n, of its margin's people.

    Where an attribute is confidential, such a cell tells it of everybody in the group: of women
    aged 51 who all have cancer, each has. With n = 2, the default, the one exception does not learn
    it of the others either. Sums and means by a confidential attribute tell it, too, and so do
    those of a confidential measure with two values, such as 0 and 1, or of a score: whole numbers that differ by ten at most.
    Where a score goes from 0 to 3, a mean of 3 tells that everybody has 3. A level is what so many people give on average;
    of such a measure each number of people from none to n must remain possible as those that differ.
    Codes that nobody of such a group has are sensitive too, since they tell as much: the empty
    cells of the two of them that most people elsewhere have are added to the table.

    The rule is on by default where an attribute of a table is confidential; n = 0 turns it off.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> rows = [("Total", "Total", 9), ("Total", "cancer", 6), ("Total", "none", 3)]
    >>> rows += [("f", "Total", 4), ("f", "cancer", 4), ("m", "Total", 5)]
    >>> rows += [("m", "cancer", 2), ("m", "none", 3)]
    >>> cells = pd.DataFrame(rows, columns=["sex", "disease", "n"])
    >>> table = Table.from_cells(
    ...     cells, ["sex", "disease"], "n", count="n", statistic="count", confidential=["disease"]
    ... )
    >>> rule = GroupDisclosure()
    >>> judged = rule.completed(table)
    >>> [judged.labels(cell) for cell in np.flatnonzero(rule.judge(judged).sensitive)]
    [('f', 'cancer'), ('f', 'none')]
    """

    name: ClassVar[str] = "group-disclosure"
    reference: ClassVar[str] = "Hundepool et al. (2012), Statistical Disclosure Control, §5.2"

    n: int = parameter(
        2, help="so many of a group must differ from the others; 0 turns the rule off", low=0
    )

    def completed(self, table: Table) -> Table:
        """Return the table with the empty cells of groups that are disclosed."""
        for place in self._places(table):
            full = self._full(table, place)[0]
            groups = table.codes[np.flatnonzero(full)]
            groups[:, place] = 0
            groups = np.unique(groups, axis=0)
            order = _by_frequency(table, place)
            lists = [_lacking(table, place, group, order) for group in groups]
            added = np.repeat(groups, [len(found) for found in lists], axis=0)
            added[:, place] = np.concatenate([np.zeros(0, dtype=np.int32), *lists])
            table = table.with_empty(added)
        return table

    def judge(self, table: Table) -> Verdict:
        """Return the cells that hold nearly all of their margin, and the empty ones beside them."""
        none = np.zeros(len(table))
        found = Verdict(none > 0, none, none)
        for place in self._places(table):
            full, missing = self._full(table, place)
            margin = _margins(table, place)
            # Empty cells of a group of which another cell holds nearly all.
            told = np.zeros(len(table), dtype=bool)
            told[margin[full]] = True
            empty = (self.needs_count(table) == 0) & (margin >= 0) & told[margin]
            empty &= table.codes[:, place] != 0
            each = _of_one_person(table, margin)
            found = found | verdict(full, missing * each, none)
            found = found | verdict(empty, none, each)
        return found | self._of_shares(table)

    def _places(self, table: Table) -> list[int]:
        """Return which attributes of a table are confidential, where it says how many people it has."""
        if table.statistic != "count" and table.count is None:
            return []
        return [table.by.index(name) for name in table.confidential if name in table.by]

    def _full(self, table: Table, place: int) -> tuple[Bools, Floats]:
        """Return the cells that hold nearly all of their margin, and how many others are missing."""
        people, margin = self.needs_count(table), _margins(table, place)
        others = np.where(margin >= 0, people[margin] - people, np.inf)
        full = (people > 0) & (table.codes[:, place] != 0) & (others < self.n)
        return full, np.where(full, self.n - others, 0.0)

    def _of_shares(self, table: Table) -> Verdict:
        """Judge sums and means of a confidential measure with few values: who has one of its ends."""
        none = np.zeros(len(table))
        if table.least is None or table.most is None:
            return Verdict(none > 0, none, none)
        people = self.needs_count(table)
        # Of weighted sums what one person gives is an average. Others differ by a step at least.
        each = (table.most - table.least) / np.maximum(people, 1) / table.steps
        share = (table.value - table.least) / np.where(each > 0, each, 1.0)
        lacking, having = self.n - (people * table.steps - share), self.n - share
        # Each number of people up to n must remain possible as those that lack or have it. Nobody
        # exceeds the ends, so that an interval which is wide enough holds them wherever it lies.
        top, bottom = ((people > 0) & (needed > 1e-9) for needed in (lacking, having))
        lower = np.maximum(np.where(top, lacking, 0.0), np.where(bottom, share, 0.0))
        upper = np.maximum(
            np.where(bottom, having, 0.0), np.where(top, people * table.steps - share, 0.0)
        )
        return verdict(top | bottom, lower * each, upper * each)


def discloses_groups(table: Table) -> bool:
    """Return whether the rule is on by default: something the table shows is confidential."""
    shown = bool(set(table.confidential) & set(table.by))
    judged = table.statistic == "count" or table.count is not None
    return (shown and judged) or table.most is not None


def _margins(table: Table, place: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return for each cell the cell with the total in place of one code, −1 where there is none."""
    return table.find(table.keys - table.codes[:, place].astype(np.int64) * _radix(table, place))


def _of_one_person(table: Table, margin: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    """Return what one person of each cell's margin gives on average; of counts 1."""
    people = table.value if table.count is None else table.count
    size = np.where(margin >= 0, magnitude(table)[margin], 0.0)
    each = size / np.maximum(np.where(margin >= 0, people[margin], 1), 1)
    return np.where(each > 0, each, 1.0)


def _by_frequency(table: Table, place: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return the leaves of an attribute, those that most people have first; the margins tell which."""
    dimension = table.dimensions[place]
    leaves = np.flatnonzero(dimension.is_leaf)
    elsewhere = (np.delete(table.codes, place, axis=1) == 0).all(axis=1)
    number = np.zeros(len(dimension.codes))
    people = table.value if table.count is None else table.count
    number[table.codes[elsewhere, place]] = people[elsewhere]
    return leaves[np.argsort(-number[leaves], kind="stable")].astype(np.int32)


def _lacking(
    table: Table,
    place: int,
    group: np.ndarray[tuple[int], np.dtype[np.int32]],
    order: np.ndarray[tuple[int], np.dtype[np.int32]],
) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return the codes to protect that nobody of a group has, and what they are part of.

    A subtotal that is left out is known to be zero, and with it all of its parts.
    """
    dimension = table.dimensions[place]
    key = sum(int(code) * _radix(table, n) for n, code in enumerate(group))
    cells = table.find(key + order.astype(np.int64) * _radix(table, place))
    people = table.value if table.count is None else table.count
    is_empty = (cells < 0) | (people[np.maximum(cells, 0)] == 0)
    found = set(order[is_empty][:_LACKING].tolist())
    for parents in dimension.parents:
        for code in tuple(found):
            above = int(parents[code])
            while above > 0:
                found.add(above)
                above = int(parents[above])
    return np.array(sorted(found), dtype=np.int32)


def _radix(table: Table, place: int) -> int:
    """Return what one step in an attribute adds to the key of a cell."""
    return int(np.prod([len(dimension.codes) for dimension in table.dimensions[place + 1 :]]))
