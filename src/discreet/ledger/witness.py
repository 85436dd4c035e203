"""Where the end of a ledger is noted outside of it, so that an older copy of the ledger is noticed."""

from __future__ import annotations

import abc
import json
import shlex
import subprocess
from pathlib import Path

from discreet.data.atomic import atomic_file
from discreet.errors import EngineError, InputError

__all__ = ["CommandWitness", "FileWitness", "Noted", "Witness"]

#: Ledger, number of the last entry, and its hash.
Noted = tuple[str, int, str]


class Witness(abc.ABC):
    """Remembers the last entry of a ledger, apart from the ledger."""

    #: Seconds between two notes, at least; the last entry is noted when the ledger is closed.
    pause: float = 1.0

    @abc.abstractmethod
    def read(self) -> Noted | None:
        """Return what was noted last, if anything was."""

    @abc.abstractmethod
    def note(self, noted: Noted) -> None:
        """Note the last entry, which is durable."""

    def close(self) -> None:  # noqa: B027
        """Let go of connections."""


class FileWitness(Witness):
    """Notes the head in a file, which belongs on another disk than the ledger."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def read(self) -> Noted | None:
        """Return what the file says."""
        if not self.path.exists():
            return None
        return _parsed(self.path.read_text(encoding="utf-8"), str(self.path))

    def note(self, noted: Noted) -> None:
        """Replace the file."""
        with atomic_file(self.path) as temporary:
            temporary.write_text(_written(noted), encoding="utf-8")


class CommandWitness(Witness):
    """Hands the last hash to a program of the curator.

    `PROGRAM read` prints what was noted last, or nothing; `PROGRAM note` gets it as one line on its
    standard input.
    """

    pause = 60.0

    def __init__(self, command: str) -> None:
        self._command = shlex.split(command)

    def read(self) -> Noted | None:
        """Run the program with the argument `read`."""
        text = self._run("read", "")
        return _parsed(text, self._command[0]) if text.strip() else None

    def note(self, noted: Noted) -> None:
        """Run the program with the argument `note`."""
        self._run("note", _written(noted))

    def _run(self, verb: str, given: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - the curator names the program and allows it
                [*self._command, verb],
                input=given,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise _unavailable(type(error).__name__) from None
        if done.returncode != 0:
            raise _unavailable(f"it ended with {done.returncode}")
        return done.stdout


def _written(noted: Noted) -> str:
    return json.dumps(dict(zip(("ledger", "number", "hash"), noted, strict=True))) + "\n"


def _parsed(text: str, where: str) -> Noted:
    try:
        found = json.loads(text)
        return str(found["ledger"]), int(found["number"]), str(found["hash"])
    except (ValueError, KeyError, TypeError):
        raise InputError(
            "this is not a head that was noted",
            code="not-a-head",
            file=where,
            hint="name the file that the head of this ledger is noted in",
        ) from None


def _unavailable(reason: str) -> EngineError:
    return EngineError(
        f"the program that notes the head failed: {reason}",
        code="ledger-witness",
        hint="run it by hand with the argument read",
    )
