"""`discreet key new`: every secret that discreet uses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from discreet.app.cli import console


def add(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="Keys: one command makes every secret.", no_args_is_help=True)
    app.add_typer(group, name="key")

    @group.command()
    def new(
        file: Annotated[
            Path, typer.Argument(help="Where the key is written; never over an old one.")
        ],
        purpose: Annotated[
            Literal["release", "ledger", "party", "cell-key"],
            typer.Option(
                "--for",
                help="A key that signs releases, heads of a ledger or a party's messages; or a "
                "secret for cell-key, record noise and --key.",
            ),
        ] = "release",
    ) -> None:
        """Write a new key for its owner alone; of one that signs, the public half beside it.

        [bold]discreet key new office.pem --for release[/bold]
        """
        if purpose == "cell-key":
            from discreet.data.keys import write_key_file

            console.note(f"wrote {write_key_file(file)}, readable by you only")
            return
        from discreet.data.signing import new_signing_key

        private, public = new_signing_key(file)
        console.note(f"wrote {private}, readable by you only, and {public}, to be published")
