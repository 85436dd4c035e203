"""What an owner states of its records: counts, sums and largest contributions of each cell."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.dataset import Dataset
from discreet.data.sql.total import total
from discreet.errors import InputError
from discreet.protocols.arithmetic.fixed_point import encode
from discreet.protocols.joint.declaration import RECORDS, JointPolicy
from discreet.protocols.joint.demand import Demand
from discreet.protocols.joint.dependence import dependences, telling_part
from discreet.protocols.joint.hypercubes import Lattice

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Extents",
    "require_measures",
    "require_offer",
    "require_parts_declared",
    "summarize",
    "summarize_withheld",
]

_ALL = "__all"
#: Of each measure how many values are missing, the least, and the sum.
Extents = tuple[tuple[int, float, float], ...]
#: A measure contains another where they are the same in one of so many records at least.
_FEW = 5


def require_offer(data: Dataset, policy: JointPolicy) -> Extents:
    """See that an owner's records have what the policy says they offer; return how far amounts go.

    Done when the owner starts: a mistake found later, during a question, would tell of the data.
    """
    named = {*policy.keys, *policy.measures, *policy.conditions, policy.unit, policy.request}
    data.relation.require(*sorted(name for name in named if name is not None))
    if len(data) > policy.records:
        raise InputError("there are more records than declared", code="beyond-bound")
    for key, codes in policy.keys.items():
        if not _is_code(data, key):
            raise InputError(
                f"column {key!r} holds neither text nor whole numbers",
                code="not-a-code",
                column=key,
                hint="recode it to text, and declare its codes",
            )
        found, known = data.frequencies([key]).column(key).to_pylist(), frozenset(codes)
        if any(code is None or str(code) not in known for code in found):
            raise InputError(
                f"column {key!r} holds a value that is not among its declared codes",
                code="undeclared-code",
                column=key,
                hint="declare all codes in the policy of every party",
            )
    found = require_measures(data, policy)
    if policy.keys:
        # A summary that fails does so now; and the first question waits for no import.
        key, measures = next(iter(policy.keys)), tuple(policy.measures)
        summarize(data, Demand("", "", (key,), measures, measures, None, ()), policy)
    return found


def require_measures(data: Dataset, policy: JointPolicy, *, known: Extents = ()) -> Extents:
    """See that amounts are those that rules are made for, and tell no more than is judged.

    Records may have changed since they were looked at: how far amounts went then is `known`, and
    their relations are looked at again where they go elsewhere now.
    """
    names = list(policy.measures)
    found = _require_amounts(data, policy, names)
    if found != known or not known:
        require_parts_declared(data, names)
        if policy.together is not None:
            _require_unrelated(data, policy.together)
    return found


def _require_amounts(data: Dataset, policy: JointPolicy, names: Sequence[str]) -> Extents:
    """See that no value is missing or negative, and that sums stay within their bounds."""
    found = tuple(_extent(data, name) for name in names)
    for name, (missing, least, added) in zip(names, found, strict=True):
        # Written so that NaN fits nowhere.
        if missing or not (least >= 0 and added <= policy.measures[name].bound):
            raise InputError(
                f"column {name!r} has a value that is missing or negative, or its sum exceeds the "
                "declared bound",
                code="beyond-bound",
                column=name,
                hint="clean the column, or declare a larger bound in the policy of every party",
            )
    return found


def require_parts_declared(data: Dataset, names: Sequence[str]) -> None:
    """See that what one measure has more than another is a measure too, where few have any.

    Of pay = salary + bonus the sums of pay and salary tell that of the bonus, which is one person's
    where nobody else in the cell has one. Rules can judge only what is declared.
    """
    for small, large in itertools.permutations(names, 2):
        rest = exp.paren(exp.Sub(this=_number(large), expression=_number(small)))
        nothing = exp.Abs(this=rest.copy()) <= _slack(small, large)
        there = exp.NEQ(this=_number(large), expression=exp.Literal.number(0))
        wanted = {
            "less": exp.LT(this=rest.copy(), expression=exp.Neg(this=_slack(small, large))),
            "same": exp.and_(nothing, there.copy()),
            "there": there,
        }
        for third in names:
            if third not in (small, large):
                gap = exp.paren(exp.Sub(this=rest.copy(), expression=_number(third)))
                wanted[f"not {third}"] = exp.Abs(this=gap) > _slack(small, large)
        row = _counted(data, wanted)
        # A record in which it is less, a deduction say, does not make two amounts unrelated.
        more = _FEW * row["less"] <= row["same"]
        contained = more and row["same"] < row["there"] <= _FEW * row["same"]
        if contained and all(row[one] for one in wanted if one.startswith("not ")):
            raise InputError(
                f"{large!r} is {small!r} and something that few records have: two sums would tell it",
                code="undeclared-part",
                column=large,
                hint=f"offer {large} less {small} too, in the policy of every party, so that it is "
                "judged; or leave one of them out",
            )
    _require_no_telling_part(data, names)


def _require_no_telling_part(data: Dataset, names: Sequence[str]) -> None:
    """See the same of measures that nearly follow from others, by whatever factors."""
    if len(names) < 2:
        return
    part = telling_part(_columns(data, names))
    if part is not None:
        others = " and ".join(name for name, _ in part.factors)
        raise InputError(
            f"{part.column!r} nearly follows from {others}, but for something that few records "
            "have: their sums would tell it",
            code="undeclared-part",
            column=part.column,
            hint=f"offer {part.text} too, in the policy of every party, so that it is judged; or "
            "leave one of them out",
        )


def _columns(data: Dataset, names: Sequence[str]) -> dict[str, npt.NDArray[np.float64]]:
    """Return columns as numbers; what is missing is NaN."""
    import pyarrow as pa
    from pyarrow import compute

    table = data.arrow(list(names))
    return {
        name: compute.cast(table.column(name), pa.float64(), safe=False).to_numpy()
        for name in names
    }


def _counted(data: Dataset, wanted: Mapping[str, exp.Expr]) -> dict[str, int]:
    """Return how many records meet each condition."""
    one, none = exp.Literal.number(1), exp.Literal.number(0)
    columns = [
        exp.Sum(this=exp.Case().when(tree, one.copy()).else_(none.copy())).as_(f"c{place}")
        for place, tree in enumerate(wanted.values())
    ]
    query = exp.select(*columns).from_(exp.to_table(data.name))
    row = data.aggregate(query).to_pylist()[0]
    return {name: int(row[f"c{place}"] or 0) for place, name in enumerate(wanted)}


def _number(name: str) -> exp.Expr:
    return exp.cast(exp.column(name, quoted=True), exp.DataType.Type.DOUBLE)


def _slack(small: str, large: str) -> exp.Expr:
    """Return what sums of floating point may be off."""
    added = exp.paren(exp.Add(this=_number(small), expression=_number(large)))
    return exp.Mul(this=added, expression=exp.Literal.number("1e-9"))


def _require_unrelated(data: Dataset, groups: Sequence[Sequence[str]]) -> None:
    """See that no measure follows from measures of another group."""
    names = [name for group in groups for name in group]
    for found in dependences(_columns(data, names)):
        if not any(set(found) <= set(group) for group in groups):
            raise InputError(
                f"the measures {', '.join(found)} follow from each other, nearly or exactly, and "
                "are not withheld together",
                code="dependent-measures",
                hint="name them in one group of `together` in the policy of every party",
            )


def _extent(data: Dataset, name: str) -> tuple[int, float, float]:
    """Return how many values are missing, the least value and the sum; of no records, zeros."""
    column = _number(name)
    wanted = {
        "missing": exp.Sub(this=exp.Count(this=exp.Star()), expression=exp.Count(this=column)),
        "least": exp.Min(this=column.copy()),
        "added": exp.Sum(this=column.copy()),
    }
    query = exp.select(*(tree.as_(alias) for alias, tree in wanted.items()))
    row = data.aggregate(query.from_(exp.to_table(data.name))).to_pylist()[0]
    return row["missing"] or 0, row["least"] or 0.0, row["added"] or 0.0


def _is_code(data: Dataset, key: str) -> bool:
    import pyarrow as pa

    kind = data.relation.schema.field(key).type
    return _is_text(kind) or pa.types.is_integer(kind)


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner))


def summarize(data: Dataset, demand: Demand, policy: JointPolicy) -> npt.NDArray[np.int64]:
    """Return what an owner states of each cell: one row for each of `Demand.rows`."""
    return _summary(selected(data, demand), demand, policy, demand.keys)


def summarize_withheld(
    data: Dataset,
    demand: Demand,
    policy: JointPolicy,
    level: int,
    cells: Sequence[tuple[str, ...]],
) -> npt.NDArray[np.int64]:
    """Return the same of all withheld cells that go into each total of a level, taken as one cell.

    Opening the total tells their sum, so they are judged together. Somebody with records in two
    of them is one contributor, which only the owner can tell.
    """
    by_start: dict[tuple[str, ...], list[str]] = {}
    for *start, last in cells:
        by_start.setdefault(tuple(start), []).append(last)
    choices = [
        exp.and_(
            *(
                _code_column(data, key).eq(code)
                for key, code in zip(demand.keys, start, strict=False)
            ),
            _code_column(data, demand.keys[-1]).isin(*(exp.Literal.string(one) for one in last)),
        )
        for start, last in by_start.items()
    ]
    inside = exp.or_(*choices) if choices else exp.false()
    chosen = selected(data, demand).where(inside)
    return _summary(chosen, demand, policy, demand.keys[:level])


def _code_column(data: Dataset, key: str) -> exp.Expr:
    column = exp.column(key, quoted=True)
    if _is_text(data.relation.schema.field(key).type):
        return column
    return exp.cast(column, exp.DataType.Type.TEXT)


def selected(data: Dataset, demand: Demand) -> Dataset:
    """Return the records that a question is about."""
    if demand.predicate is None:
        return data
    tree = total(demand.predicate.copy())
    for column in tree.find_all(exp.Column):
        column.set("table", None)
    return data.where(tree)


def _summary(
    data: Dataset, demand: Demand, policy: JointPolicy, by: tuple[str, ...]
) -> npt.NDArray[np.int64]:
    codes = [policy.tree(key).codes if demand.margins else policy.keys[key] for key in by]
    places = {cell: place for place, cell in enumerate(itertools.product(*codes))}
    rows = demand.rows(policy)
    found = np.zeros((len(rows), len(places)), dtype=np.int64)

    def put(cells: pa.Table, measure: str | None, fields: Mapping[str, str]) -> None:
        keys = [cells.column(key).to_pylist() for key in by]
        try:
            index = [places[cell] for cell in zip(*keys, strict=True)] if keys else [0]
        except KeyError:
            raise InputError(
                "a key has a code that was not declared when the owner started",
                code="undeclared-code",
                hint="declare all codes in the policy of every party",
            ) from None
        for row, (what, name) in enumerate(rows):
            if what not in fields or name not in ("", measure):
                continue
            values = np.asarray(cells.column(fields[what]).to_pylist(), dtype=np.float64)
            bound = policy.measure(name or RECORDS)
            found[row, index] = encode(values, scale=bound.scale, bound=bound.bound, name=name)

    counted = {"contributors": "count" if policy.unit is None else "units", "count": "count"}
    largest = demand.largest(policy)
    tops = {f"top {place}": f"top_{place + 1}" for place in range(largest)}
    margins = demand.margins
    for measure in demand.judged or (None,):
        found_cells = _cells(data, by, measure, policy, largest=largest, margins=margins)
        sums = "count" if measure == RECORDS else "sum"
        put(found_cells, measure, counted | {"sum": sums} | tops)
        if policy.request is not None and measure is not None:
            asking = data.where(exp.column(policy.request, quoted=True))
            cells = _cells(asking, by, measure, policy, largest=1, margins=margins)
            put(cells, measure, {"asked": "top_1"})
    if margins:
        # Totals of rounded numbers, not rounded totals: the opened table then adds up.
        lattice = Lattice(tuple(policy.tree(key) for key in by))
        for row, (what, _) in enumerate(rows):
            if what in ("count", "sum"):
                found[row] = lattice.added(found[row])
    return found


def _cells(
    data: Dataset,
    keys: tuple[str, ...],
    measure: str | None,
    policy: JointPolicy,
    *,
    largest: int,
    margins: bool,
) -> pa.Table:
    """Return an owner's cells that are not empty; without keys, the one cell of all records."""
    options: dict[str, Any] = {
        "measure": None if measure == RECORDS else measure,
        "identify": measure == RECORDS,  # else nobody's number of records is stated
        "unit": policy.unit,
        "largest": largest,
        "margins": margins,
    }
    if keys:
        trees = {key: (policy.tree(key),) if margins else () for key in keys}
        return data.cells(trees, **options)
    import pyarrow as pa

    alone = data.with_columns({_ALL: pa.array(["all"] * len(data), type=pa.string())})
    table = alone.cells({_ALL: ()}, **options).drop_columns([_ALL])
    if len(table):
        return table
    return pa.table({field.name: pa.array([0], type=field.type) for field in table.schema})
