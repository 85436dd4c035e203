"""Marks beside a source that name the ledger which remembers what is answered about it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import quote

from discreet.data.engines.base import Engine
from discreet.data.origin import Origin

__all__ = ["mark_file", "marked_by", "read_mark"]

_NOTE = (
    "A ledger of discreet remembers what was answered about this source. Answers under another "
    "ledger would not be judged with them. Remove this file only with that ledger."
)


def mark_file(origin: Origin) -> Path | None:
    """Return the file that marks a source; none for what is no file.

    >>> mark_file(Origin("file", "/data/people.csv")).name
    'people.csv.ledger-mark'
    """
    if origin.kind != "file":
        return None
    path = Path(origin.place)
    table = f".{quote(origin.table, safe='')}" if origin.table else ""
    return path.with_name(f"{path.name}{table}.ledger-mark")


def read_mark(origin: Origin) -> str | None:
    """Return which ledger marked a file, if one did."""
    file = mark_file(origin)
    try:
        return None if file is None else str(json.loads(file.read_bytes())["ledger"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return ""  # a mark that cannot be read is nobody's


def marked_by(origin: Origin, engine: Engine, ledger: str) -> str | None:
    """Return which ledger marks a source: this one, if none did; None if no mark can be kept."""
    if origin.kind == "table":
        return engine.mark(origin.table, ledger)
    file = mark_file(origin)
    assert file is not None
    content = json.dumps({"ledger": ledger, "note": _NOTE}) + "\n"
    # Written under another name and then linked: the first process wins, and no reader sees half a file.
    draft = file.with_name(f"{file.name}.{os.getpid()}.{ledger[:8]}.new")
    try:
        if (known := read_mark(origin)) is not None:
            return known
        draft.write_text(content, encoding="utf-8")
        try:
            os.link(draft, file)
        except FileExistsError:
            return read_mark(origin)
        finally:
            draft.unlink(missing_ok=True)
    except OSError:
        return None
    return ledger
