"""What each column probably is, judged from its name, its type and aggregates of its values.

No record is looked at: the engine answers with counts, distinct counts and extremes. The judgement
is a suggestion with its reason; the curator decides.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sqlglot import exp

from discreet.data.engines.base import ROW, Relation
from discreet.data.names import meaning, number_of_somebody, tells_of_somebody
from discreet.data.schema import Column, Role, Schema, Type

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = [
    "Summary", "first_rows", "infer_schema", "is_place", "judge", "summaries", "value_kind",
]  # fmt: skip

#: Records judged from where a dataset is only being opened; `describe` looks at all.
SAMPLE = 50_000
_FEW = 50
#: Columns in one question: PostgreSQL answers with at most 1,664 values.
_ASKED = 200
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}")
_INTERVAL = re.compile(r"[<>≤≥]?=?\s*[\[(]?-?\d+([.,]\d+)?\s*([-–,+].*)?")


class HasRelation(Protocol):
    """A dataset, as far as it is looked at here."""

    @property
    def relation(self) -> Relation:
        """The rows."""


@dataclasses.dataclass(frozen=True)
class Summary:
    """Aggregates of one column; `low` and `high` are for the judgement and are not shown."""

    name: str
    kind: str
    records: int
    missing: int
    distinct: int
    low: Any = dataclasses.field(repr=False)  # a value of the column's own type
    high: Any = dataclasses.field(repr=False)
    #: Each value of a text and its `count`, where they were counted along the way.
    values: pa.Table | None = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def present(self) -> int:
        """Records with a value."""
        return self.records - self.missing

    @property
    def uniqueness(self) -> float:
        """Distinct values per record with a value; 1 where no value repeats."""
        return self.distinct / self.present if self.present else 0.0


#: Whole numbers up to this are degrees, which say where somebody is to within 100 km.
_DEGREES = 1_000


def is_place(summary: Summary) -> bool:
    """Whether numbers are coordinates, as the name says: degrees with decimals, or metres."""
    fine = summary.kind == "number" or (
        summary.kind == "integer"
        and max(abs(end) for end in (summary.low or 0, summary.high or 0)) > _DEGREES
    )
    return fine and meaning(summary.name, "place") is not None


def infer_schema(source: HasRelation | Relation, *, rows: int | None = SAMPLE) -> Schema:
    """Return the probable role and type of every column with a reason, and unit and weight.

    Parameters
    ----------
    rows
        Judge from so many of the records; None: from all.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.data.dataset import read
    >>> data = read(pa.table({"patient_id": [1, 2, 3], "Edad": [30, 40, 40], "salary": [1, 2, 3]}))
    >>> [(c.name, c.role.value, c.reason) for c in infer_schema(data).columns][1]
    ('Edad', 'quasi', "the name says 'edad'")
    >>> infer_schema(data).unit
    'patient_id'
    """
    relation = source if isinstance(source, Relation) else source.relation
    return judge(summaries(relation, rows=rows))


def summaries(
    relation: Relation, *, rows: int | None = None, approximate: bool = False
) -> tuple[Summary, ...]:
    """Return the aggregates of every column, asked for in one query where that is quickest.

    Wide files are asked in several. `approximate` lets the engine estimate how many values differ.
    An estimate of nearly all is taken as all, which at worst protects a column that need not be.
    """
    fields = [field for field in relation.schema if field.name != ROW]
    return tuple(
        summary
        for start in range(0, len(fields), _ASKED)
        for summary in _summaries(relation, fields[start : start + _ASKED], rows, approximate)
    )


def _summaries(
    relation: Relation, fields: Sequence[pa.Field], rows: int | None, approximate: bool
) -> tuple[Summary, ...]:
    from discreet.data.engines import sql

    query = relation.query if rows is None else first_rows(relation, rows)
    wanted: list[exp.Expression] = [sql.alias(exp.Count(this=exp.Star()), "n")]
    apart: list[exp.Expression] = []
    for place, field in enumerate(fields):
        value = sql.column(field.name)
        wanted.append(sql.alias(exp.Count(this=value), f"k{place}"))
        if value_kind(field.type) == "nested":
            continue
        guess = relation.engine.estimated(value.copy()) if approximate else None
        if guess is not None:
            wanted.append(sql.alias(guess, f"e{place}"))
        else:
            distinct = exp.Count(this=exp.Distinct(expressions=[value.copy()]))
            together = wanted if relation.engine.counts_together else apart
            together.append(sql.alias(distinct, f"d{place}"))
            sketch = relation.engine.estimated(value.copy())
            if together is apart and sketch is not None and value_kind(field.type) == "text":
                wanted.append(sql.alias(sketch, f"a{place}"))
        if value_kind(field.type) != "boolean":  # PostgreSQL has no least boolean
            wanted.append(sql.alias(exp.Min(this=value.copy()), f"l{place}"))
            wanted.append(sql.alias(exp.Max(this=value.copy()), f"h{place}"))
    found: dict[str, Any] = {}
    values: dict[int, pa.Table] = {}
    for some in (wanted, *([one] for one in apart)):
        place = int(some[0].alias[1:]) if some is not wanted else -1
        if rows is None and found.get(f"a{place}", MANY_TEXTS) < MANY_TEXTS:
            # Few texts: counting them one by one costs no more, and they are looked at later.
            counted = relation.engine.frequencies(relation, [fields[place].name])
            values[place] = counted
            found[f"d{place}"] = counted.num_rows - counted.column(0).null_count
            continue
        found |= relation.engine.fetch(sql.select(sql.subquery(query, "t"), some)).to_pylist()[0]
    return tuple(
        Summary(
            name=field.name,
            kind=value_kind(field.type),
            records=int(found["n"]),
            missing=int(found["n"] - found[f"k{place}"]),
            distinct=_distinct(found, place),
            low=found.get(f"l{place}"),
            high=found.get(f"h{place}"),
            values=values.get(place),
        )
        for place, field in enumerate(fields)
    )


#: Fewer different texts than this are fetched, each once.
MANY_TEXTS = 50_000
#: From this share on, an estimate of different values is taken as all of them.
_NEARLY_ALL = 0.9


def _distinct(found: dict[str, Any], place: int) -> int:
    """Return how many values differ: as counted, or as estimated."""
    if f"e{place}" not in found:
        return int(found.get(f"d{place}", 0))
    present, guess = int(found[f"k{place}"]), int(found[f"e{place}"])
    low = found.get(f"l{place}")
    if present and low is not None and low == found.get(f"h{place}"):
        return 1
    return present if guess >= _NEARLY_ALL * present else guess


def first_rows(relation: Relation, rows: int) -> exp.Query:
    """Return the query of the first rows."""
    from discreet.data.engines import sql

    columns = [sql.column(name) for name in relation.columns]
    return sql.select(sql.subquery(relation.query, "s"), columns).limit(rows)


def value_kind(kind: pa.DataType) -> str:
    """Return in a word what values of a type are, as they are judged here."""
    import pyarrow as pa

    is_ = pa.types
    if is_.is_boolean(kind):
        return "boolean"
    if is_.is_integer(kind):
        return "integer"
    if is_.is_floating(kind) or is_.is_decimal(kind):
        return "number"
    if is_.is_temporal(kind):
        return "date"
    if is_.is_nested(kind) or is_.is_binary(kind) or is_.is_large_binary(kind):
        return "nested"
    return "text"


def judge(columns: tuple[Summary, ...]) -> Schema:
    """Return the schema that aggregates and names suggest."""
    weight = next((summary.name for summary in columns if _is_weight(summary)), None)
    judged = tuple(_column(summary) for summary in columns)
    return Schema(judged, unit=_unit(columns, judged), weight=weight)


def _is_weight(summary: Summary) -> bool:
    positive = isinstance(summary.low, int | float) and summary.low > 0
    return (
        summary.kind in ("integer", "number")
        and positive
        and meaning(summary.name, "weight") is not None
    )


def _column(summary: Summary) -> Column:
    if _is_weight(summary):
        reason = "the name says it is a weight"
        return Column(summary.name, Role.OTHER, Type.NUMERIC, reason=reason, decided=False)
    role, reason = _role(summary)
    return Column(summary.name, role, _type(summary, role), reason=reason, decided=False)


def _role(summary: Summary) -> tuple[Role, str]:
    if summary.present == 0:
        return Role.OTHER, "it has no values"
    for kind, role in (
        ("identifier", Role.IDENTIFIER),
        ("confidential", Role.CONFIDENTIAL),
        ("quasi", Role.QUASI),
    ):
        word = meaning(summary.name, kind)
        if role is Role.CONFIDENTIAL and _is_free_text(summary):
            continue  # notes are not marks, and may name people whatever the column is called
        if word is not None and not (role is Role.IDENTIFIER and summary.kind == "boolean"):
            return role, f"the name says {word!r}"
    number = number_of_somebody(summary.name)
    if number is not None and summary.kind in ("integer", "text"):
        return Role.IDENTIFIER, f"the name says {number!r}"
    word = meaning(summary.name, "staff")
    if word is not None and summary.kind == "text":
        return Role.IDENTIFIER, f"the name says {word!r}: its values may name people"
    if is_place(summary):
        return Role.QUASI, f"the name says {meaning(summary.name, 'place')!r}: where somebody is"
    if summary.distinct == 1:
        return Role.OTHER, "it has one value only"
    return _role_of_values(summary)


def _role_of_values(summary: Summary) -> tuple[Role, str]:
    enough = summary.present >= 20
    if summary.kind == "text":
        if _is_date(summary):
            return Role.QUASI, "dates are often known to others"
        if enough and summary.uniqueness > 0.95:
            return Role.IDENTIFIER, "nearly every record has a text of its own"
        if summary.distinct <= max(_FEW, summary.present // 20):
            return Role.QUASI, f"{summary.distinct:,} different texts, which others may know"
        return Role.IDENTIFIER, "free text, which may name people: read it before it leaves"
    if summary.kind == "date":
        return Role.QUASI, "dates are often known to others"
    if summary.kind == "boolean":
        return Role.QUASI, "two values, which others may know"
    if summary.kind == "nested":
        return Role.OTHER, "nested values are not judged"
    span = _span(summary)
    no_gaps = span is not None and span + 1 <= 1.01 * summary.present
    if enough and summary.uniqueness > 0.95 and _is_long_number(summary):
        return (
            Role.IDENTIFIER,
            "numbers of 9 to 13 digits that hardly repeat, like those of persons",
        )
    if enough and no_gaps and summary.uniqueness == 1.0:
        return Role.IDENTIFIER, "a running number: no value repeats and none is left out"
    if summary.distinct <= min(_FEW, max(2, summary.present // 10)):
        return Role.QUASI, f"{summary.distinct:,} different numbers, like a code or a count"
    return Role.CONFIDENTIAL, "a measured number with many different values"


def _is_free_text(summary: Summary) -> bool:
    return summary.kind == "text" and summary.present >= 20 and summary.uniqueness > 0.4


def _is_date(summary: Summary) -> bool:
    """Whether texts are dates, such as 31/12/1999; the first and the last stand for all."""
    return all(_DATE.fullmatch(str(end)) for end in (summary.low, summary.high))


def _is_long_number(summary: Summary) -> bool:
    low, high = summary.low, summary.high
    return isinstance(low, int) and isinstance(high, int) and low >= 10**8 and high < 10**13


def _span(summary: Summary) -> int | None:
    if isinstance(summary.low, int) and isinstance(summary.high, int):
        return summary.high - summary.low
    return None


def _type(summary: Summary, role: Role) -> Type:
    if summary.kind == "date":
        return Type.DATE
    if summary.kind in ("integer", "number"):
        coded = summary.kind == "integer" and summary.distinct <= _FEW
        if role is Role.IDENTIFIER:
            return Type.NOMINAL
        if coded and meaning(summary.name, "ordinal") is not None:
            return Type.ORDINAL
        few = coded and summary.distinct <= 2 and role is Role.QUASI
        return Type.NOMINAL if few else Type.NUMERIC
    if summary.kind == "text" and summary.present:
        ends = (str(summary.low), str(summary.high))
        if _is_date(summary):
            return Type.DATE
        if all(_INTERVAL.fullmatch(end) for end in ends) and role is not Role.IDENTIFIER:
            return Type.ORDINAL
    return Type.NOMINAL


def _unit(summaries: tuple[Summary, ...], columns: tuple[Column, ...]) -> str | None:
    """Return whom records belong to: a group that owns several, else the person, else an id."""
    known = [
        (summary, column)
        for summary, column in zip(summaries, columns, strict=True)
        if summary.missing == 0
        and summary.distinct > 1
        and summary.kind in ("integer", "text")
        # Two people may share a name, and one person may write it in two ways.
        and meaning(summary.name, "called") is None
        and not tells_of_somebody(summary.name)
    ]
    for summary, _ in known:
        if meaning(summary.name, "group") and 0.2 < summary.uniqueness < 1:
            return summary.name
    identifiers = [
        s for s, c in known if c.role is Role.IDENTIFIER and meaning(s.name, "identifier")
    ]
    for summary in identifiers:
        if meaning(summary.name, "person"):
            return summary.name
    unique = [s.name for s in identifiers if s.uniqueness == 1.0]
    return unique[0] if unique else None
