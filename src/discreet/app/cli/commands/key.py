"""`discreet key new`: keys, for a curator or for a party of a joint computation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from discreet.app.cli import console
from discreet.app.cli.groups import add_group


def add(app: typer.Typer) -> None:
    """Register the command."""
    add_group(app, "key", "Secret keys.").command("new")(_new)


def _new(
    file: Annotated[Path, typer.Argument(help="Where it is written; a party's without suffix.")],
    purpose: Annotated[
        Literal["curator", "party"],
        typer.Option("--for", help="curator: a secret for --key; party: a key and a certificate."),
    ] = "curator",
) -> None:
    r"""Write a new secret key, readable by you only, and never over an old one.

    For a party FILE.key stays with it; FILE.crt goes into the policy of the others.
    [bold]discreet key new --for party hospital-a[/bold]
    """
    from discreet.data.keys import write_key_file
    from discreet.protocols.transport.identity import Identity

    if purpose == "curator":
        console.note(f"wrote {write_key_file(file)}, readable by you only")
        return
    identity = Identity.new(file.parent, file.name)
    console.note(
        f"wrote {identity.key}, readable by you only: keep it\n"
        f"wrote {identity.certificate}: give it to the other parties\npin   {identity.pin}"
    )
