"""`discreet table new-key`: a secret key; the other commands of the group are jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.app.cli import console
from discreet.app.cli.groups import add_group


def add(app: typer.Typer) -> None:
    """Register the command."""
    add_group(app, "table").command("new-key")(_new_key)


def _new_key(file: Annotated[Path, typer.Argument(help="Where the key is written.")]) -> None:
    """Write a secret key for cell-key and record noise and for --key; keep it to yourself."""
    from discreet.data.keys import write_key_file

    console.note(f"wrote {write_key_file(file)}, readable by you only")
