"""Several measures of the same records protected together: counts, sums and means.

Of count, sum and mean of a cell any two tell the third. So where means are published, a cell that is
withheld in one of them is withheld in all. Each measure is protected with the cells of the others
withheld already; more withheld cells never tell more, so that what was safe stays safe.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.audit.rules import Rule
from discreet.data.linked import LinkedTables
from discreet.data.table import Status, Table
from discreet.errors import InputError
from discreet.tables.methods import TableMethod
from discreet.tables.tabulation import counted

__all__ = ["Group", "grouped", "require_unrelated", "told_apart"]

Bools = npt.NDArray[np.bool_]
Identity = frozenset[tuple[str, str]]


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """The tables that add up the same thing, linked: sums and means of one measure, or counts."""

    linked: LinkedTables
    #: The tables with their sensitive cells marked, and their places among all.
    tables: tuple[Table, ...]
    places: tuple[int, ...]
    #: Whether what is withheld here must be withheld in all other groups that say so.
    together: bool

    @property
    def joint(self) -> Table:
        """All cells of the group, each once."""
        return self.linked.joint

    def identities(self) -> list[Identity]:
        """Return what each cell is in whatever table: its codes other than totals."""
        joint = self.joint
        totals = [dimension.total for dimension in joint.dimensions]
        return [
            frozenset(
                (name, code)
                for name, code, total in zip(joint.by, joint.labels(cell), totals, strict=True)
                if code != total
            )
            for cell in range(len(joint))
        ]

    def mask(self, cells: set[Identity]) -> Bools:
        """Return which cells of the group are among some."""
        return np.array([identity in cells for identity in self.identities()], dtype=bool)

    def chosen(self, mask: Bools) -> set[Identity]:
        """Return what the cells of a mask are."""
        return {
            identity
            for identity, flag in zip(self.identities(), mask.tolist(), strict=True)
            if flag
        }


def grouped(tables: Sequence[Table], rules: Sequence[Rule], method: TableMethod) -> list[Group]:
    """Return the groups of tables in the order in which they are protected: counts last.

    The numbers behind means are a group even where no table of counts is given, since they are
    printed beside the means.
    """
    of: dict[str | None, list[int]] = {}
    for place, table in enumerate(tables):
        of.setdefault(None if table.statistic == "count" else table.measure, []).append(place)
    means = [place for place, table in enumerate(tables) if table.statistic == "mean"]
    numbers = of.pop(None, [])
    groups = []
    for places in of.values():
        marked = [method.mark(tables[place], rules) for place in places]
        together = any(place in means for place in places)
        groups.append(_group([_summed(table) for table in marked], marked, places, together))
    sensitive = set().union(*(g.chosen(_primary(g.joint)) for g in groups if g.together), set())
    behind: dict[str | None, list[int]] = {None: []} if numbers else {}
    for place in means:
        behind.setdefault(_counted_by(tables[place]), []).append(place)
    for population, places in behind.items():
        own = numbers if population is None else []
        counts = [_counts(tables[place], rules, method) for place in own]
        counts += [counted(method.mark(tables[place], rules)) for place in places]
        group = _group(counts, counts[: len(own)], own, bool(means))
        groups.append(_sensitive_too(group, sensitive))
    return groups


def require_unrelated(tables: Sequence[Table]) -> None:
    """Refuse measures of which one follows from several others: each is protected for itself.

    One that is a multiple of another has the same pattern, and tells no more.
    """
    sources = {t.measure: s for t in tables if t.measure and (s := getattr(t, "source", None))}
    numbers = {name: source.numbers(name, missing=np.nan) for name, source in sources.items()}
    if len({len(column) for column in numbers.values()}) != 1:
        return
    columns = {str(name): column for name, column in numbers.items()}
    if any(table.statistic in ("count", "mean") for table in tables):
        columns["the number of records"] = np.ones(len(next(iter(numbers.values()))))
    matrix = np.stack(list(columns.values()), axis=1)
    matrix = matrix[~np.isnan(matrix).any(axis=1)]
    size = np.linalg.norm(matrix, axis=0)
    kept: list[int] = []
    for place in np.flatnonzero(size > 0).tolist():
        column = matrix[:, place] / size[place]
        likeness = [abs(column @ matrix[:, other]) / size[other] for other in kept]
        if all(one < 1 - 1e-12 for one in likeness):
            kept.append(place)
    if len(kept) < 3 or len(matrix) <= len(kept):
        return
    _, singular, rows = np.linalg.svd(matrix[:, kept] / size[kept], full_matrices=False)
    if singular[-1] > 1e-9 * singular[0]:
        return
    names = [list(columns)[place] for place, part in zip(kept, rows[-1], strict=True) if abs(part) > 1e-6]  # fmt: skip
    raise InputError(
        "one of "
        + ", ".join(names)
        + " follows from the others, so that a cell which is withheld in "
        "one of them would be a subtraction of the others",
        code="related-measures",
        hint="leave one of them out: whoever has the others can compute its published cells",
        measures=names,
    )


def _counted_by(table: Table) -> str | None:
    """Return the measure of a mean that some records lack: their numbers are of other records."""
    source = getattr(table, "source", None)
    return None if source is None or source.has_value().all() else table.measure


def _group(
    added: Sequence[Table], marked: Sequence[Table], places: Sequence[int], together: bool
) -> Group:
    return Group(LinkedTables.of(told_apart(added)), tuple(marked), tuple(places), together)


def _summed(table: Table) -> Table:
    """Return a table of means as the table of sums that it is protected through."""
    return table.replace(statistic="sum") if table.statistic == "mean" else table


def _counts(table: Table, rules: Sequence[Rule], method: TableMethod) -> Table:
    """Return a table of counts marked by those of the rules that judge counts."""
    judging = []
    for rule in rules:
        try:
            rule.judge(table)
        except InputError as error:
            if error.code != "table-without-contributions":
                raise
        else:
            judging.append(rule)
    return method.mark(table, judging)


def _sensitive_too(group: Group, cells: set[Identity]) -> Group:
    """Return the group with cells marked as sensitive that are so in another measure."""
    joint = group.linked.joint
    assert joint.status is not None
    status = np.where(group.mask(cells), np.int8(Status.PRIMARY), joint.status)
    marked = dataclasses.replace(joint, status=status)
    return dataclasses.replace(group, linked=dataclasses.replace(group.linked, joint=marked))


def _primary(table: Table) -> Bools:
    assert table.status is not None
    return np.asarray(table.status == Status.PRIMARY)


def told_apart(tables: Sequence[Table]) -> list[Table]:
    """Return the tables with contributors numbered so that no two tables use one number.

    Numbers mean something within their own table only, unless the tables were made together.
    """
    tokens = {id(getattr(table, "numbering", None)) for table in tables}
    if len(tokens) == 1 and getattr(tables[0], "numbering", None) is not None:
        return list(tables)
    numbered, start = [], 0
    for table in tables:
        units = table.contributors
        if units is not None:
            table = table.replace(contributors=np.where(units >= 0, units + start, -1))
            start += int(units.max(initial=0)) + 1
        numbered.append(table)
    return numbered
