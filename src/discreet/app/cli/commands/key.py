"""`discreet key new`: every secret that discreet uses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from discreet.app.cli import console
from discreet.app.cli.groups import add_group


def add(app: typer.Typer) -> None:
    """Register the command."""
    add_group(app, "key", "Keys: one command makes every secret.").command("new")(_new)


def _new(
    file: Annotated[
        Path,
        typer.Argument(
            help="Where the key is written, never over an old one; a party's without suffix."
        ),
    ],
    purpose: Annotated[
        Literal["release", "ledger", "cell-key", "party"],
        typer.Option(
            "--for",
            help="release, ledger: a key that signs; cell-key: a secret for cell-key, record "
            "noise and --key; party: a key and a certificate.",
        ),
    ] = "release",
    as_json: console.JsonOption = False,
) -> None:
    """Write a new key for its owner alone, and the public half of it beside where there is one.

    For a party FILE.key stays with it; FILE.crt goes into the policy of the others.
    [bold]discreet key new office.pem --for release[/bold],
    [bold]discreet key new --for party hospital-a[/bold]
    """
    if purpose == "cell-key":
        from discreet.data.keys import write_key_file

        secret = write_key_file(file)
        console.done(f"wrote {secret}, readable by you only", as_json=as_json, private=secret)
    elif purpose == "party":
        from discreet.protocols.transport.identity import Identity

        identity = Identity.new(file.parent, file.name)
        console.done(
            f"wrote {identity.key}, readable by you only: keep it\n"
            f"wrote {identity.certificate}: give it to the other parties\npin   {identity.pin}",
            as_json=as_json,
            private=identity.key,
            certificate=identity.certificate,
            pin=identity.pin,
        )
    else:
        from discreet.data.signing import new_signing_key

        private, public = new_signing_key(file)
        console.done(
            f"wrote {private}, readable by you only, and {public}, to be published",
            as_json=as_json,
            private=private,
            public=public,
        )
