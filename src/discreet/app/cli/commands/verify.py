"""`discreet verify`: read a written release again and judge what it promises."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.app.cli import console


def add(app: typer.Typer) -> None:
    """Register the command."""

    @app.command()
    def verify(
        folder: Annotated[
            list[Path],
            typer.Argument(help="What a release wrote, or a folder of such folders."),
        ],
        key: Annotated[
            Path | None, typer.Option(help="Public key that must have signed every manifest.")
        ] = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Read the files of releases again and judge every promise that they state as data.

        Several folders are attacked together, too. Readers and counts are not those that made the release. Exit code 0 if nothing speaks
        against a promise, 3 otherwise; what only the curator can check is listed as such.
        [bold]discreet verify out[/bold]
        """
        from discreet.verification.findings import Verification
        from discreet.verification.folder import verify as verified
        from discreet.verification.joint import verify_together

        alone = [f for one in folder for f in verified(one, key=key).findings]
        found = Verification((*alone, *(verify_together(folder) if len(folder) > 1 else ())))
        console.show(found, as_json=as_json)
        console.note(found.verdict)
        if not found.holds:
            raise typer.Exit(3)
