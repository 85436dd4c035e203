"""A policy to start from: every column decided or held back, with the reason beside it.

A guess about a column is written down as a decision only where it cannot let more out: a column that
is suggested to identify somebody, that raises an alarm, or of which nothing is known for sure is
held back (`identifier`) and listed as one to decide. What others may know (`quasi`) is protected by
the model of the release; what is called confidential leaves within classes of at least k people.
"""

from __future__ import annotations

import dataclasses
import json
import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.addresses import without_passwords
from discreet.data.describe import (
    ILLNESSES,
    METADATA_SAY,
    PERHAPS_ILLNESSES,
    PERSON_NAMES,
    ColumnDescription,
    Description,
    describe,
)
from discreet.data.names import meaning, tells_of_somebody
from discreet.data.schema import Role
from discreet.data.source import UNDECIDED
from discreet.data.suggestion import suggest_hierarchy
from discreet.data.unit_candidates import unit_candidates
from discreet.errors import InputError
from discreet.registry import is_address
from discreet.report import Report, Rows

if TYPE_CHECKING:
    from discreet.data.source import Source

__all__ = [
    "Examined",
    "Start",
    "breakdown_columns",
    "diverse",
    "examine",
    "measure_column",
    "records_release",
    "starting_policy",
    "table_release",
    "table_trees",
    "written_policy",
]

#: Class size of the release that is suggested.
_K = 5
#: Columns that a role can be suggested for in a reasonable time.
_WIDEST = 2_000
#: Hierarchies whose groups are worth a sub-total in a table; intervals and rare values are not.
_SUBTOTALS = frozenset({"standard", "dates"})
#: With more quasi-identifiers than this the search over hierarchies takes long.
_MANY = 8
#: Ways in which a name is known to say what a column holds.
_NAMED = ("the name says", METADATA_SAY)
#: Why a column is held back whose values, however often they repeat, tell no owner of records.
_NO_OWNER = (PERSON_NAMES, PERHAPS_ILLNESSES)
#: Why nothing is released before somebody says to whom records belong.
_OWNER = (
    "it repeats like a number or code of persons, of whom each has several records: write it as "
    "`unit:` in the policy, or delete that line if it is none; nothing is released before"
)


#: Why a column called "employees" or "client" is held back.
_OF_PERSONS = "its name speaks of persons: if it does not name or number them, say quasi"

_ABOUT = (
    "# Fill in: what the hand-over document of every release says besides what was done.",
    "about:",
    '  purpose: ""',
    '  source: ""',
    '  period: ""',
    '  contact: ""',
    '  legal_basis: ""',
    '  conditions: ""',
)


@dataclasses.dataclass(frozen=True)
class Start(Report):
    """A policy to start from, and what is left to decide."""

    policy: str = dataclasses.field(repr=False)
    kind: str
    #: Columns that are held back until somebody decides, with the reason, then `questions`.
    to_decide: tuple[tuple[str, str], ...]
    #: Columns that others may know, with the hierarchy that is suggested.
    hierarchies: tuple[tuple[str, str], ...]
    #: Confidential columns that leave unchanged within their classes, with what to know of them.
    cautions: tuple[tuple[str, str], ...] = ()
    #: How the file is to be read, where it does not say: the key of the policy and what to decide.
    questions: tuple[tuple[str, str], ...] = ()

    def rows(self) -> Rows:
        """Return one line per column that is left to decide."""
        return ("to decide", "held back because"), [list(pair) for pair in self.to_decide]

    def __str__(self) -> str:
        lines: list[str] = []
        many = len(self.to_decide) - len(self.questions)
        held = self.to_decide[:many]
        for title, listed in (
            (f"Held back until you decide ({many} column{'s' * (many != 1)}):", held),
            ("To decide about how the file is read (nothing is released before):", self.questions),
            ("Confidential columns that would leave unchanged:", self.cautions),
        ):
            lines += [title] if listed else []
            for name, why in listed:
                lines += textwrap.wrap(
                    f"{name}: {why}", 80, initial_indent="  ", subsequent_indent="      "
                )
        if self.questions:
            lines.append(
                "Say it to init again (--dates day, --footer 1): what it guesses then fits."
            )
        return "\n".join([*lines, "Roles are guesses: read the policy and correct it."])


@dataclasses.dataclass(frozen=True)
class Examined:
    """A source as far as a policy to start from needs it."""

    source: Source
    found: Description
    roles: dict[str, str]
    to_decide: tuple[tuple[str, str], ...]
    #: Settings of a hierarchy for every column that others may know. Any: numbers, texts, lists.
    trees: dict[str, dict[str, Any]]
    #: Columns that may say whom records belong to, which nobody decided.
    owners: tuple[str, ...] = ()

    def decided(self) -> Source:
        """Return the source with the roles and hierarchies that are suggested."""
        from discreet.data.declared import declared

        roles = {name: Role(role) for name, role in self.roles.items()}
        trees: Any = {name: several[0] for name, several in declared(self.trees).items()}
        # Trials take a column that may be of persons for one: they promise too little at worst.
        missing = {column.name: column.missing for column in self.found.columns}
        owner = next((name for name in self.owners if not missing[name]), self.found.unit)
        return dataclasses.replace(self.source, roles=roles, hierarchies=trees, unit=owner)


def examine(source: Source) -> Examined:
    """Describe a source, and suggest a role for every column and hierarchies."""
    if not is_address(source.source) and set(source.source) & set("*?["):
        raise InputError(
            f"{source.source!r} is a pattern, and a policy names one file or folder",
            code="bad-path",
            hint="put the files into a folder of their own and give the folder: they are read as one",
        )
    dataset = source.open()
    if len(dataset.columns) > _WIDEST:
        raise InputError(
            f"{len(dataset.columns):,} columns are too many to suggest a role for each",
            code="too-many-columns",
            hint=f"write the at most {_WIDEST} columns that are to leave into a file of their own, "
            "such as with pandas: pd.read_csv(FILE, usecols=[…]).to_csv('chosen.csv', index=False)",
        )
    found = describe(dataset)
    if found.unit is None:
        found = dataclasses.replace(found, unit=_owner(found))
    named = {column.name: column for column in found.columns}
    owned = found.unit is not None and _is_who(found.unit) and named[found.unit].uniqueness < 1
    owners = () if owned else unit_candidates(dataset, found)
    owners = tuple(name for name in owners if name not in _doubts(found))
    roles, to_decide = _roles(found, owners)
    quasi = [name for name, role in roles.items() if role == Role.QUASI.value]
    trees = {name: suggest_hierarchy(dataset, name) for name in quasi}
    return Examined(source, found, roles, tuple(to_decide), trees, owners)


def _owner(found: Description) -> str | None:
    """Return the column that says whose a record is, where somebody has several.

    Classes that count records would take the many records of one person for many people. Of several
    such columns the one with the most values is taken; doctors and others who serve many people
    own no record.
    """
    doubts = _doubts(found)
    several = {
        column.name: column.distinct
        for column in found.columns
        if column.name not in doubts
        and (_is_who(column.name) or (column.role == Role.IDENTIFIER.value and not _serves(column)))
        and 1 < column.distinct < found.records - column.missing
    }
    return max(several, key=lambda name: several[name]) if several else None


def _doubts(found: Description) -> set[str]:
    """Return what is asked about: a column that is a text by a doubt looks like names of somebody."""
    return {one.about for one in found.reading.questions} if found.reading is not None else set()


def _serves(column: ColumnDescription) -> bool:
    return column.reason in _NO_OWNER or meaning(column.name, "staff") is not None


def _is_who(name: str) -> bool:
    """Whether a column's name speaks of persons and of nothing else: it tells them apart."""
    return not tells_of_somebody(name) and any(
        meaning(name, kind) for kind in ("person", "called", "identifier")
    )


def starting_policy(source: Source, policy: str | Path, *, kind: str | None = None) -> Start:
    """Return the text of a policy for a source; nothing is written and nothing is released.

    Parameters
    ----------
    policy
        Where it will be: paths in it start there.
    kind
        "anonymize" for a file of records, the default; "table" for a table of sums or counts.
    """
    looked = examine(source)
    chosen = kind or "anonymize"
    write = table_release if chosen == "table" else records_release
    shown = tuple((name, _inline(tree)) for name, tree in looked.trees.items())
    # In a table no value of a record leaves by itself.
    cautions = tuple(
        (alarm.column, alarm.why)
        for alarm in looked.found.alarms
        if looked.roles[alarm.column] == Role.CONFIDENTIAL.value and chosen != "table"
    )
    text = written_policy(looked, policy, write(looked), is_table=chosen == "table")
    asked = _questions(looked.found)
    return Start(text, chosen, (*looked.to_decide, *asked), shown, cautions, asked)


def _questions(found: Description) -> tuple[tuple[str, str], ...]:
    """Return what the file does not say, each with the key of the policy that says it."""
    asked = []
    for question in found.reading.questions if found.reading is not None else ():
        options = {option for option, _ in question.answers}
        key = f"data.{options.pop()}" if len(options) == 1 else "data"
        asked.append((key, question.in_policy()))
    return tuple(asked)


def written_policy(
    looked: Examined, policy: str | Path, release: Sequence[str], *, is_table: bool
) -> str:
    """Return a policy with the lines of a release."""
    lines = [
        *_head(looked, policy),
        *_role_lines(looked.found, looked.roles, dict(looked.to_decide)),
        *_tree_lines(table_trees(looked) if is_table else looked.trees),
        *release,
        *_ABOUT,
    ]
    return "\n".join(lines) + "\n"


def _roles(
    found: Description, owners: Sequence[str] = ()
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return a role for every column, and those that are held back to be decided."""
    alarms = {alarm.column: alarm.why for alarm in found.alarms}
    doubts = _doubts(found)
    roles: dict[str, str] = {}
    to_decide: list[tuple[str, str]] = []
    for column in found.columns:
        role, why = column.role, column.reason
        is_known = why.startswith(_NAMED) or why == ILLNESSES
        if column.name in doubts:
            # What is guessed of it may not fit once it is read otherwise.
            roles[column.name] = Role.IDENTIFIER.value
            to_decide.append((column.name, "how it is read is to be decided first: see below"))
            continue
        if column.name in owners:
            roles[column.name] = Role.IDENTIFIER.value
            to_decide.append((column.name, _OWNER))
            continue
        if role == Role.IDENTIFIER.value or column.name in (found.unit, found.weight):
            roles[column.name] = Role.IDENTIFIER.value
            if _serves(column) and column.name != found.unit:
                to_decide.append((column.name, why))
            if column.name == found.weight:
                to_decide.append((column.name, "a weight: say `weight:` if records are weighted"))
            continue
        # Measured numbers mostly differ; what is called confidential may leave within its class.
        is_measured = is_known and role == Role.CONFIDENTIAL.value and column.type == "numeric"
        if column.name in alarms and not is_measured:
            to_decide.append((column.name, alarms[column.name]))
        elif role == Role.QUASI.value and _is_who(column.name):
            to_decide.append((column.name, _OF_PERSONS))
        elif role == Role.OTHER.value or (role == Role.CONFIDENTIAL.value and not is_known):
            to_decide.append((column.name, why))
        else:
            roles[column.name] = role
            continue
        roles[column.name] = Role.IDENTIFIER.value
    return roles, to_decide


def _head(looked: Examined, policy: str | Path) -> list[str]:
    source, found, owners = looked.source, looked.found, looked.owners
    lines = [
        f"# A policy to start from, for {found.records:,} records. Read every line: you decide.",
        "# Then: discreet check POLICY, and discreet release POLICY -o out",
        "data:",
        f"  source: {_quoted(_relative(source.source, policy))}",
        f"  name: {_quoted(found.name)}",
    ]
    said = {name: getattr(source, name) for name in source.reading_options() if name != "metadata"}
    lines += [
        f"  {name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in said.items()
        if value is not None
    ]
    if source.types:
        types = {name: str(kind) for name, kind in source.types.items()}
        lines.append(f"  types: {json.dumps(types, ensure_ascii=False)}")
    if source.metadata is not None:
        lines.append(f"  metadata: {_quoted(_relative(source.metadata, policy))}")
    if found.reading is not None:
        told = "; ".join(f"{guess.what} {guess.found}" for guess in found.reading.guesses)
        lines += _comment(f"Read as {found.reading.format}: {told}.", "  ")
        doubts = found.reading.questions
        for question in doubts:
            told = f"TO DECIDE, nothing is released before: {question.in_policy()}"
            lines += _comment(f"{told}, here under `data:`.", "  ")
        if doubts:
            names = ", ".join(_quoted(question.about) for question in doubts)
            lines += _comment(f"What is right as it was read is named here, of: {names}", "  ")
        else:
            lines += _comment("A doubt about how the file is read stops releases; none now.", "  ")
        lines.append("  as_read: []")
    if owners:
        asked = f"TO DECIDE, nothing is released before: do records belong to {', '.join(owners)}?"
        lines += _comment(f"{asked} Write the column here, or delete the line.", "  ")
        lines.append(f"  unit: {_quoted(UNDECIDED)}")
    elif found.unit is not None:
        shared = "; people of one name count as one: better a column that numbers them"
        told = "whom the records belong to" + (shared if meaning(found.unit, "called") else "")
        lines.append(f"  unit: {_quoted(found.unit)}  # {told}")
    return lines


def _relative(path: str, policy: str | Path) -> str:
    """Return a file as the policy names it: from the policy's own folder."""
    if is_address(path):
        return without_passwords(path)  # the caller gives them to each run, with --allow
    return os.path.relpath(Path(path).resolve(), Path(policy).resolve().parent)


def _role_lines(found: Description, roles: dict[str, str], to_decide: dict[str, str]) -> list[str]:
    lines = [
        "  # identifier: never leaves; quasi: others may know it; confidential: to be protected;",
        "  # other: leaves as it is, under no promise.",
        "  roles:",
    ]
    alarms = {alarm.column: alarm.why for alarm in found.alarms}
    for column in found.columns:
        why = to_decide.get(column.name)
        note = f"TO DECIDE, held back: {why}" if why else column.reason
        if roles[column.name] == Role.CONFIDENTIAL.value and column.name in alarms:
            note = f"{note}; {alarms[column.name]}"
        lines.append(f"    {_quoted(column.name)}: {roles[column.name]}  # {_one_line(note)}")
    return lines


def table_trees(looked: Examined) -> dict[str, dict[str, Any]]:
    """Return the hierarchies that give a table sub-totals: sections of activities, regions, years."""
    return {
        name: tree
        for name in breakdown_columns(looked)
        if (tree := looked.trees[name]).keys() & _SUBTOTALS
    }


def _tree_lines(trees: dict[str, dict[str, Any]]) -> list[str]:
    if not trees:
        return []
    lines = [
        "  # How values are made coarser or added up; `discreet hierarchy new` writes one to edit.",
        "  hierarchies:",
    ]
    return lines + [f"    {_quoted(name)}: {_inline(tree)}" for name, tree in trees.items()]


def diverse(looked: Examined) -> list[str]:
    """Return the confidential columns of names, of which every class must hold several."""
    return [
        column.name
        for column in looked.found.columns
        if looked.roles[column.name] == Role.CONFIDENTIAL.value and column.type == "nominal"
    ]


def records_release(
    looked: Examined, *, k: int = _K, different: int = 2, method: str | None = None
) -> list[str]:
    """Return the lines of a release of records."""
    if not looked.trees:
        return ["# No column is known to others, so there is nothing to anonymise: decide above."]
    chosen = method or (
        "mondrian" if len(looked.trees) > _MANY else "{generalization: {suppression: 0.1}}"
    )
    models = [f"      - k-anonymity: {k}  # nobody among fewer than {k} people"]
    models += [
        f"      - l-diversity: {{column: {_quoted(name)}, l: {different}}}  # no class shares one value"
        for name in diverse(looked)
    ]
    return [
        "releases:",
        "  - name: records",
        "    kind: anonymize",
        "    models:",
        *models,
        f"    method: {chosen}",
        "reports:",
        "  - name: risk",
        "    kind: risk",
    ]


def breakdown_columns(looked: Examined) -> list[str]:
    """Return the columns that a table can be broken down by, those with fewest values first."""
    return [
        column.name
        for column in sorted(looked.found.columns, key=lambda one: one.distinct)
        if looked.roles[column.name] == Role.QUASI.value and 1 < column.distinct <= 100
    ]


def measure_column(looked: Examined) -> str | None:
    """Return the first confidential number; none means that records are counted."""
    return next(
        (
            column.name
            for column in looked.found.columns
            if looked.roles[column.name] == Role.CONFIDENTIAL.value and column.type == "numeric"
        ),
        None,
    )


def table_release(
    looked: Examined,
    *,
    by: Sequence[str] | None = None,
    p: int = 10,
    least: int = 3,
    method: str = "suppression",
) -> list[str]:
    """Return the lines of a release of a table."""
    possible = breakdown_columns(looked)
    by = possible[:2] if by is None else by
    if not by:
        return ["# No column has few enough values to count by: decide above."]
    measure = measure_column(looked)
    lines = [
        "releases:",
        "  - name: table",
        "    kind: table",
        f"    by: [{', '.join(map(_quoted, by))}]",
    ]
    more = [name for name in possible if name not in by]
    lines += _comment(f"It can also be broken down by {', '.join(more)}.", "    ") if more else []
    if measure is not None:
        lines.append(f"    measure: {_quoted(measure)}")
        lines += ["    rules:", f"      - p-percent: {p}", f"      - minimum-frequency: {least}"]
    else:
        lines += ["    rules:", f"      - minimum-frequency: {least}"]
    return [*lines, f"    method: {method}"]


def _quoted(text: str) -> str:
    """Return a text as YAML reads it back, whatever it holds."""
    return json.dumps(text, ensure_ascii=False)


def _one_line(text: str) -> str:
    """Return a note that cannot end its comment, whatever the file's names hold."""
    return "".join(c if c.isprintable() else " " for c in text)


def _comment(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        _one_line(text), 96, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "
    )


def _inline(tree: dict[str, Any]) -> str:
    return json.dumps(tree, ensure_ascii=False)
