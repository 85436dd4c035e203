"""A question to all owners: keys, measures and condition, read from SQL by every party alike."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.dataset import Dataset
from discreet.data.sql import parse
from discreet.data.sql.query import Output
from discreet.data.sql.spelling import spelled
from discreet.data.sql.total import total
from discreet.errors import InputError, RefusedError
from discreet.protocols.arithmetic.fixed_point import encode
from discreet.protocols.joint.declaration import JointPolicy, MeasureBound

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Demand", "read_demand", "require_offer", "summarize", "summarize_withheld"]

_ALL = "__all"
#: What a total has in the place of a code.
TOTAL = "Total"
_FUNCTIONS = ("count", "units", "sum", "avg")


@dataclasses.dataclass(frozen=True, eq=False)
class Demand:
    """One joint table: its keys, what is summed, which records count."""

    question: str
    digest: str
    keys: tuple[str, ...]
    measures: tuple[str, ...]
    predicate: exp.Expression | None
    #: Label, function and column of each column of the result; the function of a key is `key`.
    outputs: tuple[tuple[str, str, str], ...]
    #: Whether totals over the last keys, then over the last but one, … are wanted too.
    totals: bool = False

    @property
    def levels(self) -> list[int]:
        """How many keys the totals of each level keep, in the order in which they are judged."""
        return list(range(len(self.keys) - 1, -1, -1)) if self.totals else []

    @property
    def condition(self) -> str:
        """The condition as text, empty where there is none."""
        return "" if self.predicate is None else spelled(self.predicate)

    def cells(self, policy: JointPolicy) -> list[tuple[str, ...]]:
        """Return the codes of every cell, in the order in which all parties number them."""
        return list(itertools.product(*(policy.keys[key] for key in self.keys)))

    def groups(self, policy: JointPolicy, level: int) -> list[tuple[str, ...]]:
        """Return the codes of every total of a level."""
        return list(itertools.product(*(policy.keys[key] for key in self.keys[:level])))

    def shown(self, policy: JointPolicy) -> list[tuple[str, ...]]:
        """Return the codes of every line of the answer: cells, then totals level by level."""
        lines = self.cells(policy)
        for level in self.levels:
            rest = (TOTAL,) * (len(self.keys) - level)
            lines += [(*group, *rest) for group in self.groups(policy, level)]
        return lines

    def opened(self) -> list[tuple[str, str]]:
        """Return what of each safe cell is opened: what the answer shows, and nothing besides."""
        functions = {function for _, function, _ in self.outputs}
        found = [("contributors", "")] if "units" in functions else []
        found += [("count", "")] if functions & {"count", "avg"} else []
        return found + [("sum", name) for name in self.measures]

    def rows(self, policy: JointPolicy) -> list[tuple[str, str]]:
        """Return what an owner states of each cell: what, and of which measure."""
        found = [("contributors", ""), ("count", "")]
        tops = range(policy.largest)
        for name in self.measures:
            found += [("sum", name), *((f"top {place}", name) for place in tops)]
            found += [("asked", name)] if policy.request is not None else []
        return found


def read_demand(sql: str, policy: JointPolicy, *, totals: bool = False) -> Demand:
    """Return the demand that a statement makes, or say why it cannot be made together."""
    query = parse(sql, policy.catalog())
    if query.having is not None or query.order or query.limit is not None or query.offset:
        raise RefusedError(
            "HAVING, ORDER BY and LIMIT are not computed together",
            code="joint-unsupported",
            hint="arrange the answer afterwards",
        )
    keys = []
    for key in query.keys:
        if not isinstance(key.expression, exp.Column) or key.expression.name not in policy.keys:
            raise RefusedError(
                "owners group by columns with declared codes only",
                code="joint-unsupported",
                hint="group by one or more of " + ", ".join(policy.keys),
            )
        keys.append(key.expression.name)
    measures = []
    for measure in query.measures:
        if measure.function not in _FUNCTIONS:
            raise RefusedError(
                f"{measure.function.upper()} is not computed together",
                code="joint-unsupported",
                hint="ask for COUNT, SUM or AVG",
            )
        if measure.argument is None:
            continue
        if measure.column not in policy.measures or measure.function == "count":
            raise RefusedError(
                "owners sum columns with declared bounds only",
                code="joint-unsupported",
                hint="sum or average one of " + (", ".join(policy.measures) or "no column"),
            )
        measures.append(measure.column)
    if query.predicate_columns - set(policy.conditions):
        raise RefusedError(
            "the condition uses a column that the owners did not agree on",
            code="joint-unsupported",
            hint="use " + (", ".join(policy.conditions) or "no condition"),
        )
    if not measures and all(f.total for rule in policy.rules for f in rule.inequalities()):
        raise RefusedError(
            "the agreed rules judge sums, none judges counts",
            code="joint-unsupported",
            hint="ask for a sum, or agree on the rule minimum-frequency",
        )
    policy.require_cells(tuple(keys))
    outputs = tuple(_output(one, keys, query.measures) for one in query.outputs)
    unique = tuple(dict.fromkeys(measures))
    if totals and (not keys or any(function == "units" for _, function, _ in outputs)):
        raise RefusedError(
            "totals are sums of cells, and there are no cells to add or distinct units to count",
            code="joint-unsupported",
            hint="group by one or more keys and ask for COUNT(*), SUM or AVG",
        )
    return Demand(
        query.question, query.digest, tuple(keys), unique, query.predicate, outputs, totals
    )


def _output(output: Output, keys: list[str], measures: tuple[object, ...]) -> tuple[str, str, str]:
    name = output.reference
    if name is None:
        raise RefusedError(
            "arithmetic on results is not computed together",
            code="joint-unsupported",
            hint="ask for the single aggregates and compute with the answer",
        )
    place = int(name[1:])
    if name.startswith("k"):
        return output.label, "key", keys[place]
    measure = measures[place]
    return output.label, measure.function, measure.column or ""  # type: ignore[attr-defined]


def require_offer(data: Dataset, policy: JointPolicy) -> None:
    """See that an owner's records have what the policy says they offer.

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
        found = data.frequencies([key]).column(key).to_pylist()
        unknown = [code for code in found if code is None or str(code) not in codes]
        if unknown:
            raise InputError(
                f"column {key!r} holds a value that is not among its declared codes",
                code="undeclared-code",
                column=key,
                hint="declare all codes in the policy of every party",
            )
    for name, measure in policy.measures.items():
        column = data.arrow([name]).column(name)
        values = column.to_pandas().to_numpy(dtype=np.float64)
        if np.isnan(values).any() or (values < 0).any() or values.sum() > measure.bound:
            raise InputError(
                f"column {name!r} has a value that is missing or negative, or its sum exceeds the "
                "declared bound",
                code="beyond-bound",
                column=name,
                hint="clean the column, or declare a larger bound in the policy of every party",
            )


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
    return _summary(_selected(data, demand), demand, policy, demand.keys)


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
    chosen = _selected(data, demand).where(inside)
    return _summary(chosen, demand, policy, demand.keys[:level])


def _code_column(data: Dataset, key: str) -> exp.Expr:
    column = exp.column(key, quoted=True)
    if _is_text(data.relation.schema.field(key).type):
        return column
    return exp.cast(column, exp.DataType.Type.TEXT)


def _selected(data: Dataset, demand: Demand) -> Dataset:
    if demand.predicate is None:
        return data
    tree = total(demand.predicate.copy())
    for column in tree.find_all(exp.Column):
        column.set("table", None)
    return data.where(tree)


def _summary(
    data: Dataset, demand: Demand, policy: JointPolicy, by: tuple[str, ...]
) -> npt.NDArray[np.int64]:
    cross = itertools.product(*(policy.keys[key] for key in by))
    places = {codes: place for place, codes in enumerate(cross)}
    rows = demand.rows(policy)
    found = np.zeros((len(rows), len(places)), dtype=np.int64)

    def put(cells: pa.Table, measure: str | None, fields: Mapping[str, str]) -> None:
        keys = [cells.column(key).to_pylist() for key in by]
        index = [places[codes] for codes in zip(*keys, strict=True)] if keys else [0]
        for row, (what, name) in enumerate(rows):
            if what not in fields or name not in ("", measure):
                continue
            values = np.asarray(cells.column(fields[what]).to_pylist(), dtype=np.float64)
            bound = policy.measures.get(name, MeasureBound(float(policy.records)))
            found[row, index] = encode(values, scale=bound.scale, bound=bound.bound, name=name)

    counted = {"contributors": "count" if policy.unit is None else "units", "count": "count"}
    tops = {f"top {place}": f"top_{place + 1}" for place in range(policy.largest)}
    for measure in demand.measures or (None,):
        put(_cells(data, by, measure, policy), measure, counted | {"sum": "sum"} | tops)
        if policy.request is not None and measure is not None:
            asking = data.where(exp.column(policy.request, quoted=True))
            cells = _cells(asking, by, measure, policy, largest=1)
            put(cells, measure, {"asked": "top_1"})
    return found


def _cells(
    data: Dataset,
    keys: tuple[str, ...],
    measure: str | None,
    policy: JointPolicy,
    *,
    largest: int | None = None,
) -> pa.Table:
    """Return an owner's cells that are not empty; without keys, the one cell of all records."""
    options = {
        "measure": measure,
        "unit": policy.unit,
        "largest": policy.largest if largest is None else largest,
        "margins": False,
    }
    if keys:
        return data.cells(dict.fromkeys(keys, ()), **options)
    import pyarrow as pa

    alone = data.with_columns({_ALL: pa.array(["all"] * len(data), type=pa.string())})
    table = alone.cells({_ALL: ()}, **options).drop_columns([_ALL])
    if len(table):
        return table
    return pa.table({field.name: pa.array([0], type=field.type) for field in table.schema})
