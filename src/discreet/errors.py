"""Everything that can go wrong, as four branches of one tree.

    DiscreetError
     ├── InputError        the call, file or policy is mistaken: correct it
     ├── RefusedError      denied to protect someone: the text discloses nothing
     ├── InfeasibleError   no safe output exists for this demand: says what would be feasible
     └── EngineError       a database, solver or file system underneath failed

Each error has a stable `code`, a message, a `hint` that says what to write instead, and its
facts as attributes, so that a terminal, a web page and an API can each show it their own way.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = [
    "DiscreetError",
    "EngineError",
    "InfeasibleError",
    "InputError",
    "RefusedError",
    "missing_extra",
    "nearest",
]


class DiscreetError(Exception):
    """Base of every error that discreet raises on purpose.

    Parameters
    ----------
    message
        What was found, in one sentence.
    code
        Stable, lower-case, hyphenated name of the mistake.
    hint
        What to write instead.
    file, line, column
        Where it was found: `column` is a column of the data, `line` a line of `file`.
    facts
        Anything else that a handler may need; available as attributes through `facts`.

    Examples
    --------
    >>> error = InputError(
    ...     "there is no column 'agee'",
    ...     code="unknown-column",
    ...     column="agee",
    ...     hint="write 'age'",
    ...     available=["age", "sex"],
    ... )
    >>> print(error)
    there is no column 'agee'; write 'age' [unknown-column]
    >>> error.facts["available"]
    ['age', 'sex']
    """

    #: Exit code of the command line and status of the HTTP interface: the one place they are set.
    exit_code = 1
    http_status = 500

    def __init__(
        self,
        message: str,
        *,
        code: str,
        hint: str | None = None,
        file: str | Path | None = None,
        line: int | None = None,
        column: str | None = None,
        **facts: Any,
    ) -> None:
        self.message = message
        self.code = code
        self.hint = hint
        self.file = None if file is None else str(file)
        self.line = line
        self.column = column
        self.facts = facts
        super().__init__(message)

    @property
    def where(self) -> str | None:
        """File and line, as editors print them."""
        if self.file is None:
            return None if self.line is None else f"line {self.line}"
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def to_dict(self) -> dict[str, Any]:
        """Return the error as plain data, for `--json` and the HTTP interface."""
        fields = {
            **self.facts,
            "error": self.code,
            "message": self.message,
            "hint": self.hint,
            "file": self.file,
            "line": self.line,
            "column": self.column,
        }
        # The code comes first, and no fact of an error takes the place of a name that is always there.
        fields = {"error": fields.pop("error"), **fields}
        return {name: value for name, value in fields.items() if value is not None}

    def __str__(self) -> str:
        text = self.message if self.where is None else f"{self.where}: {self.message}"
        if self.hint:
            text += f"; {self.hint}"
        return f"{text} [{self.code}]"

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process borders (parallel audits), and keyword-only arguments do not pickle
        # by themselves.
        return _rebuild, (type(self), self.message, self._keywords())

    def _keywords(self) -> dict[str, Any]:
        place = {"file": self.file, "line": self.line, "column": self.column}
        return {"code": self.code, "hint": self.hint, **place, **self.facts}


def _rebuild(kind: type[DiscreetError], message: str, keywords: dict[str, Any]) -> DiscreetError:
    return kind(message, **keywords)


class InputError(DiscreetError):
    """The caller made a mistake that the caller can correct.

    >>> print(InputError("the file is empty", code="empty-file", file="people.csv"))
    people.csv: the file is empty [empty-file]
    """

    exit_code = 2
    http_status = 422


class RefusedError(DiscreetError):
    """The answer is denied to protect someone; the text discloses nothing.

    >>> RefusedError("too few records", code="query-set-size").http_status
    403
    """

    exit_code = 3
    http_status = 403


class InfeasibleError(DiscreetError):
    """No safe output exists for this demand; the hint says what would be feasible.

    >>> print(
    ...     InfeasibleError("k is above the number of records", code="k-too-large", hint="k ≤ 15")
    ... )
    k is above the number of records; k ≤ 15 [k-too-large]
    """

    exit_code = 4
    http_status = 409


class EngineError(DiscreetError):
    """A database, a solver or the file system underneath failed.

    >>> EngineError("PostgreSQL cannot be reached", code="cannot-connect").exit_code
    5
    """

    exit_code = 5
    http_status = 502


def missing_extra(what: str, extra: str) -> InputError:
    """Return the error for a job whose libraries are not installed.

    >>> print(missing_extra("differential privacy", "dp"))
    differential privacy needs the extra 'dp'; pip install 'discreet[dp]' [missing-extra]
    """
    return InputError(
        f"{what} needs the extra {extra!r}",
        code="missing-extra",
        hint=f"pip install 'discreet[{extra}]'",
    )


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word most like a misspelt one, if any is like it.

    >>> nearest("p-precent", ["p-percent", "dominance"])
    'p-percent'
    """
    known = list(known)
    if len(word) > 200:  # nobody misspells a word by that much, and comparing takes long
        return None
    folded = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[found[0]] if found else None
