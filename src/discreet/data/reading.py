"""How a source was read: every guess with the option that changes it, and what to look at."""

from __future__ import annotations

import dataclasses

from discreet.errors import InputError, missing_extra
from discreet.report import Report, Rows

__all__ = ["Guess", "Reading", "needs_extra"]


@dataclasses.dataclass(frozen=True)
class Guess(Report):
    """One thing that a file does not say and that was found from its content."""

    what: str
    found: str
    #: The option that says it otherwise, such as `delimiter`.
    option: str


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
    #: What could not be decided, in words.
    questions: tuple[str, ...] = ()

    def rows(self) -> Rows:
        """Return one line per guess."""
        body = [("format", self.format, "--format")]
        body += [(guess.what, guess.found, f"--{guess.option}") for guess in self.guesses]
        return ("read as", "found", "to change it"), body


def needs_extra(suffix: str) -> InputError:
    """Return the error for a file whose reader is not installed."""
    return missing_extra(f"reading {suffix} files", "files")
