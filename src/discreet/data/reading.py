"""How a source was read: every guess with the option that changes it, and what to look at."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Mapping
from typing import Any

from discreet.errors import InputError, missing_extra
from discreet.report import Report, Rows

__all__ = ["Guess", "Question", "Reading", "needs_extra"]


@dataclasses.dataclass(frozen=True)
class Guess(Report):
    """One thing that a file does not say and that was found from its content."""

    what: str
    found: str
    #: The option that says it otherwise, such as `delimiter`.
    option: str


class Question(str):
    """A doubt about how a file was read: what it is about, how it was read, how to answer.

    Programs are given it as a text. `about` is the name under which a policy lets the reading stand
    (`as_read`); each answer is an option and a value.

    >>> asked = Question("seen", "day first? Read as text;", (("dates", "day"), ("dates", "month")))
    >>> asked
    'seen: day first? Read as text; write --dates day or --dates month'
    >>> asked.in_policy()
    'seen: day first? Read as text; write `dates: day` or `dates: month`'
    >>> print(Question("sum (EUR)", "a text; if all are codes", (("types", "sum (EUR)"),)))
    sum (EUR): a text; if all are codes write --type 'sum (EUR)=nominal'
    """

    __slots__ = ("about", "answers", "said")

    about: str
    said: str
    answers: tuple[tuple[str, str], ...]

    def __new__(
        cls, about: str, said: str = "", answers: tuple[tuple[str, str], ...] = ()
    ) -> Question:
        """Join the parts to one text, with the answers as the command line takes them."""
        typed = [
            "--type " + shlex.quote(f"{value}=nominal")
            if option == "types"
            else f"--{option} {shlex.quote(value)}"
            for option, value in answers
        ]
        made = super().__new__(cls, _joined(about, said, typed))
        made.about, made.said, made.answers = about, said, answers
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a copy is made from."""
        return self.about, self.said, self.answers

    def in_policy(self) -> str:
        """Return the text with the answers as a policy has them."""
        written = [
            f"`types: {{{json.dumps(value, ensure_ascii=False)}: nominal}}`"
            if option == "types"
            else f"`{option}: {value if value[0].isalnum() else json.dumps(value)}`"
            for option, value in self.answers
        ]
        return _joined(self.about, self.said, written)


def _joined(about: str, said: str, answers: list[str]) -> str:
    return f"{about}: {said}" + (f" write {' or '.join(answers)}" if answers else "")


@dataclasses.dataclass(frozen=True)
class Reading(Report):
    """How a source was read.

    Examples
    --------
    >>> print(Reading("csv", (Guess("fields end at", "';'", "delimiter"),)))
    read as     found  to change it
    format      csv    --format
    fields end at  ';'    --delimiter
    """

    format: str
    guesses: tuple[Guess, ...] = ()
    #: What could not be decided.
    questions: tuple[Question, ...] = ()
    #: By column, the codes of a statistical package in their order, each with its label.
    labels: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    #: Values in their order, for columns of categories that have one, and which compare by it.
    orders: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    ordinal: tuple[str, ...] = ()
    #: What metadata say of columns: a role, `unit` or `weight`, and the words that say so.
    said: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    #: The hierarchies that metadata declare. Any: settings of a `HierarchySource`.
    trees: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)

    def rows(self) -> Rows:
        """Return one line per guess."""
        body = [("format", self.format, "--format")]
        body += [
            (guess.what, guess.found, f"--{guess.option}" if guess.option else "")
            for guess in self.guesses
        ]
        return ("read as", "found", "to change it"), body


def needs_extra(suffix: str) -> InputError:
    """Return the error for a file whose reader is not installed."""
    return missing_extra(f"reading {suffix} files", "files")
