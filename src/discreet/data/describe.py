"""What a file holds, before anything is decided: columns, suggested roles, how exposed people are."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.data.formulas import formula_columns
from discreet.data.infer import Summary, is_place, judge, summaries
from discreet.data.person_names import look_like_names
from discreet.data.reading import Reading
from discreet.data.schema import Role
from discreet.data.suggestion import like_icd10
from discreet.report import Report, Rows, text_table

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.data.engines.base import Relation

__all__ = [
    "ILLNESSES",
    "METADATA_SAY",
    "PERHAPS_ILLNESSES",
    "PERSON_NAMES",
    "Alarm",
    "ColumnDescription",
    "Description",
    "Exposure",
    "describe",
    "exposure",
]


#: Characters in a line of a terminal, and of a name in a table of columns.
WIDTH = 80
_NAME = 20
#: Characters that reasons need beside the columns.
_REASON = 18
#: From this share of different values on, numbers tell most people apart.
_NEAR_UNIQUE = 0.5
#: Labels of a column's codes that are shown.
_LABELS = 12

#: Columns with more different texts are not read for names of people.
_TEXTS = 5_000
_FORMULA = "some texts begin with =, +, - or @, which spreadsheet programs run as formulas"
#: Why a column of few texts is held back.
PERSON_NAMES = "its values look like names of people"
#: Why a column is confidential whatever its name is.
ILLNESSES = "its values are codes of illnesses (ICD-10)"
#: Why a column of codes is held back.
PERHAPS_ILLNESSES = (
    "its values may be codes of illnesses (ICD-10): confidential, with "
    "l-diversity, if they are; else quasi"
)
#: Why a column has its role, where a file of metadata says so.
METADATA_SAY = "the metadata say"
#: Why a column has its role, where somebody said so.
GIVEN = "given by the curator"


@dataclasses.dataclass(frozen=True)
class ColumnDescription(Report):
    """One column as it is, and what it seems to be."""

    name: str
    type: str
    distinct: int
    missing: int
    #: Distinct values per record that has one.
    uniqueness: float
    role: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Alarm(Report):
    """A column to look at before anything else, and why."""

    column: str
    why: str


@dataclasses.dataclass(frozen=True)
class Exposure(Report):
    """How far some columns together tell records apart."""

    columns: tuple[str, ...]
    records: int
    #: Different combinations of values.
    classes: int
    smallest_class: int
    unique_records: int
    unique_share: float
    #: Records that share their values with fewer than two, or four, others.
    below_3: int
    below_5: int
    #: Records found by an intruder who knows the columns of everybody and guesses within a class.
    expected_reidentifications: float


@dataclasses.dataclass(frozen=True)
class Description(Report):
    """What a dataset holds and how exposed its people are."""

    name: str
    records: int
    columns: tuple[ColumnDescription, ...]
    unit: str | None
    weight: str | None
    exposure: Exposure | None
    #: Free text, names, coordinates and near-unique numbers.
    alarms: tuple[Alarm, ...] = ()
    #: How the file was read; none for frames and tables.
    reading: Reading | None = None
    #: Whether the numbers of different values are estimates.
    approximate: bool = False

    def rows(self) -> Rows:
        """Return one line per column."""
        header = ("column", "type", "distinct", "missing", "uniqueness", "role", "why")
        body = [
            (c.name, c.type, c.distinct, c.missing, _share(c.uniqueness), c.role, c.reason)
            for c in self.columns
        ]
        return header, body

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.records:,} records, {len(self.columns)} columns"]
        if self.alarms:
            lines += ["", "Look at these first:"]
            lines += [line for one in self.alarms for line in _wrapped(one.column, one.why)]
        lines += ["", *_column_lines(self.columns)]
        special = [
            f"{word}: {column}"
            for word, column in (("unit", self.unit), ("weight", self.weight))
            if column is not None
        ]
        if special:
            lines += ["", "suggested " + ", ".join(special)]
        if self.exposure is not None:
            lines += ["", _told(self.exposure)]
        if self.reading is not None:
            lines += ["", str(self.reading)]
            for name, codes in self.reading.labels.items():
                told = ", ".join(f"{code} {label}" for code, label in list(codes.items())[:_LABELS])
                lines += _wrapped(name, told + (" …" if len(codes) > _LABELS else ""))
            for question in self.reading.questions:
                lines += textwrap.wrap(question, WIDTH, subsequent_indent="    ")
        if self.approximate:
            lines += ["", "Different values are estimated, within about 5 %; classes are counted."]
        if any(c.reason != GIVEN for c in self.columns):
            lines += ["", "Roles are suggestions: you decide, with roles=… or in a policy file."]
        return "\n".join(lines)


def _wrapped(name: str, text: str) -> list[str]:
    """Return a name and what is said of it, in lines of at most 80 characters."""
    return textwrap.wrap(f"{name}: {text}", WIDTH, initial_indent="  ", subsequent_indent="      ")


def _column_lines(columns: Sequence[ColumnDescription]) -> list[str]:
    """Return one line per column, and its reason on further lines where it is long."""
    header = ("column", "type", "distinct", "missing", "unique", "role")
    body = [
        (_cut(c.name), c.type, c.distinct, c.missing, f"{c.uniqueness:.1%}", c.role)
        for c in columns
    ]
    table = text_table(header, body).splitlines()
    at = max(map(len, table)) + 2
    if WIDTH - at < _REASON:  # wide tables have the reasons on lines of their own
        lines = [table[0]]
        for line, column in zip(table[1:], columns, strict=True):
            lines += [line.rstrip(), *_under(column.reason)]
        return lines
    lines = [table[0].ljust(at) + "why"]
    for line, column in zip(table[1:], columns, strict=True):
        first, *rest = textwrap.wrap(column.reason, max(WIDTH - at, 16)) or [""]
        lines.append((line.ljust(at) + first).rstrip())
        lines += [" " * at + more for more in rest]
    return lines


def _under(reason: str) -> list[str]:
    return textwrap.wrap(reason, WIDTH, initial_indent="    ", subsequent_indent="    ")


def _cut(name: str) -> str:
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def describe(dataset: Dataset, *, approximate: bool = False) -> Description:
    """Describe every column, suggest its role, and measure how exposed the records are.

    Roles that were given stand; the others are suggested from names and aggregates. The exposure
    is that of the quasi-identifiers together.

    Parameters
    ----------
    approximate
        Let DuckDB and Spark estimate by sketches how many values of a column differ: one pass over
        the records instead of one for each column. PostgreSQL counts.

    Examples
    --------
    >>> from discreet import demo
    >>> from discreet.data.dataset import read
    >>> print(describe(read(demo.salaries_arrow(), name="salaries")))
    salaries: 15 records, 4 columns
    <BLANKLINE>
    column  type     distinct  missing  unique   role          why
    id      nominal        15        0  100.0%  identifier    the name says 'id'
    salary  numeric        10        0  66.7%   confidential  the name says 'salary'
    sector  nominal         3        0  20.0%   quasi         the name says 'sector'
    region  nominal         2        0  13.3%   quasi         the name says 'region'
    <BLANKLINE>
    suggested unit: id
    <BLANKLINE>
    Somebody who knows the 2 quasi-identifiers of a person (sector, region):
    sees different combinations      6
    finds one record only for        1  6.67% of 15
    finds fewer than 3 records for   3  20.00%
    finds fewer than 5 records for  15  100.00%
    is expected to guess right for   6  40.00%
    <BLANKLINE>
    Roles are suggestions: you decide, with roles=… or in a policy file.
    """
    found = summaries(dataset.relation, approximate=approximate)
    guessed = judge(found)
    columns = []
    for summary in found:
        given, guess = dataset.schema[summary.name], guessed[summary.name]
        stands = given.reason == "given"
        columns.append(
            ColumnDescription(
                name=summary.name,
                type=(given if stands or _is_category(dataset, summary.name) else guess).type.value,
                distinct=summary.distinct,
                missing=summary.missing,
                uniqueness=summary.uniqueness,
                role=(given if stands else guess).role.value,
                reason=GIVEN if stands else guess.reason,
            )
        )
    columns = [_said(dataset, column) for column in columns]
    spoken = {column.name: _told_by_texts(dataset, column) for column in columns}
    named = [name for name, told in spoken.items() if told == PERSON_NAMES]
    columns = [
        dataclasses.replace(column, role=_ROLES[told].value, reason=told)
        if (told := spoken[column.name]) is not None
        else column
        for column in columns
    ]
    quasi = [column.name for column in columns if column.role == Role.QUASI.value]
    return Description(
        name=dataset.name,
        records=found[0].records if found else 0,
        columns=tuple(columns),
        unit=dataset.schema.unit or _named(dataset, "unit") or guessed.unit,
        weight=dataset.schema.weight or _named(dataset, "weight") or guessed.weight,
        exposure=exposure(dataset.relation, quasi) if quasi and _any_records(found) else None,
        alarms=(
            *(Alarm(name, PERSON_NAMES) for name in named),
            *_alarms(dataset, found, columns),
        ),
        reading=dataset.reading,
        approximate=approximate and dataset.engine.estimated(exp.Null()) is not None,
    )


def _said(dataset: Dataset, column: ColumnDescription) -> ColumnDescription:
    """Return a column as its metadata say, where nobody gave it a role and no more is let out.

    A column that may be recoded need not be one that others know: what its name says stands.
    """
    said = dataset.reading.said.get(column.name) if dataset.reading is not None else None
    is_named = column.reason.startswith("the name says") and said != ("quasi", "IDLEVEL")
    is_held = column.role == Role.IDENTIFIER.value or is_named
    if said is None or column.reason == GIVEN or (said[0] == "quasi" and is_held):
        return column
    role = {"unit": Role.IDENTIFIER.value, "weight": Role.OTHER.value}.get(said[0], said[0])
    return dataclasses.replace(column, role=role, reason=f"{METADATA_SAY} {said[1]}")


def _named(dataset: Dataset, what: str) -> str | None:
    """Return the first column that metadata call the unit or the weight."""
    said = dataset.reading.said if dataset.reading is not None else {}
    return next((name for name, (found, _) in said.items() if found == what), None)


def _is_category(dataset: Dataset, name: str) -> bool:
    """Whether whoever made the data said that a column holds categories."""
    labels = dataset.reading.labels if dataset.reading is not None else {}
    return name in labels or bool(dataset.schema[name].order)


_ROLES = {
    PERSON_NAMES: Role.IDENTIFIER,
    ILLNESSES: Role.CONFIDENTIAL,
    PERHAPS_ILLNESSES: Role.IDENTIFIER,
}


def _told_by_texts(dataset: Dataset, column: ColumnDescription) -> str | None:
    """Return what few texts tell of a column: names of people or illnesses, if no role was given.

    A name of the column that says what it holds ("city") is believed: places look like people.
    """
    is_free = column.reason.startswith("free text")
    if (
        not (column.role == Role.QUASI.value or is_free)
        or column.type != "nominal"
        or column.distinct > _TEXTS
        or column.reason == GIVEN
        or column.reason.startswith(("the name says", METADATA_SAY))
    ):
        return None
    texts = [str(v) for v in dataset.frequencies([column.name]).column(0).to_pylist() if v]
    if not is_free and look_like_names(texts):
        return PERSON_NAMES
    found = like_icd10(texts)
    return {True: ILLNESSES, None: PERHAPS_ILLNESSES}.get(found)


def _alarms(
    dataset: Dataset, found: Sequence[Summary], columns: Sequence[ColumnDescription]
) -> tuple[Alarm, ...]:
    """Return what must be looked at first: values that name people, places, near-unique numbers."""
    from discreet.data.decisions import identifying

    named = identifying(dataset, [summary.name for summary in found], found)
    alarms = [Alarm(name, f"its values {what}") for name, what in named.items()]
    for summary, column in zip(found, columns, strict=True):
        if summary.name in named or column.role == Role.IDENTIFIER.value:
            continue
        if is_place(summary):
            alarms.append(Alarm(summary.name, "coordinates, as the name says: where somebody is"))
        elif (
            summary.kind in ("integer", "number")
            and summary.present >= 20
            and summary.uniqueness >= _NEAR_UNIQUE
        ):
            share = f"{summary.uniqueness:.0%} of the numbers differ"
            alarms.append(Alarm(summary.name, f"{share}: they tell people apart"))
    told = {alarm.column for alarm in alarms}
    formulas = formula_columns(dataset.relation)
    return (*alarms, *(Alarm(name, _FORMULA) for name in formulas if name not in told))


def _any_records(found: Sequence[Summary]) -> bool:
    return bool(found) and found[0].records > 0


def exposure(relation: Relation, columns: Sequence[str]) -> Exposure:
    """Measure how far columns together tell records apart; the engine counts the classes."""
    from discreet.data.engines import sql

    relation.require(*columns)
    keys = [sql.column(name) for name in columns]
    size = sql.alias(exp.Count(this=exp.Star()), "size")
    classes = sql.select(sql.subquery(relation.query, "t"), [size]).group_by(*keys)

    def records_below(limit: int) -> exp.Expression:
        small = exp.LT(this=sql.column("size"), expression=exp.Literal.number(limit))
        value = exp.Case(
            ifs=[exp.If(this=small, true=sql.column("size"))], default=exp.Literal.number(0)
        )
        return sql.bigint(exp.Sum(this=value))

    wanted: dict[str, exp.Expression] = {
        "classes": exp.Count(this=exp.Star()),
        "records": sql.bigint(exp.Sum(this=sql.column("size"))),
        "smallest": exp.Min(this=sql.column("size")),
        "one": records_below(2),
        "two": records_below(3),
        "four": records_below(5),
    }
    query = sql.select(
        sql.subquery(classes, "c"), [sql.alias(value, name) for name, value in wanted.items()]
    )
    row: dict[str, Any] = relation.engine.fetch(query).to_pylist()[0]
    records = int(row["records"] or 0)
    return Exposure(
        columns=tuple(columns),
        records=records,
        classes=int(row["classes"]),
        smallest_class=int(row["smallest"] or 0),
        unique_records=int(row["one"] or 0),
        unique_share=int(row["one"] or 0) / records if records else 0.0,
        below_3=int(row["two"] or 0),
        below_5=int(row["four"] or 0),
        # In a class of n, a guess is right with probability 1/n; each class adds n times that.
        expected_reidentifications=float(row["classes"]),
    )


def _share(part: float) -> str:
    """Return a share in per cent; a small one is not called nothing."""
    return "<0.01%" if 0 < part < 0.00005 else f"{part:.2%}"


def _told(found: Exposure) -> str:
    """Return the exposure as a custodian reads it."""

    def line(word: str, records: float, *, of: str = "") -> tuple[str, int, str]:
        share = records / found.records if found.records else 0.0
        return word, round(records), _share(share) + of

    many = len(found.columns) > 1
    quasi = f"{len(found.columns)} quasi-identifiers" if many else "quasi-identifier"
    body: list[tuple[str, int, str]] = [
        ("sees different combinations", found.classes, ""),
        line("finds one record only for", found.unique_records, of=f" of {found.records:,}"),
        line("finds fewer than 3 records for", found.below_3),
        line("finds fewer than 5 records for", found.below_5),
        line("is expected to guess right for", found.expected_reidentifications),
    ]
    names = ", ".join(found.columns)
    head = textwrap.fill(f"Somebody who knows the {quasi} of a person ({names}):", WIDTH)
    return head + "\n" + text_table(("", "", ""), body)
