"""`discreet man`: the manual page, and every command with its options as data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.app.cli import console


def add(app: typer.Typer) -> None:
    """Register the command."""

    @app.command()
    def man(
        context: typer.Context,
        output: Annotated[
            Path | None, typer.Option("--output", "-o", help="Write it to this file: discreet.1.")
        ] = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Print the manual page of all commands, for man; with --json their declarations.

        [bold]discreet man | man -l -[/bold]; to install it:
        [bold]discreet man -o ~/.local/share/man/man1/discreet.1[/bold]
        """
        from discreet.app.cli.man import declared, man_page
        from discreet.data.atomic import atomic_file

        root = typer.main.get_command(context.find_root().obj())
        if output is not None:
            with atomic_file(output) as file:
                file.write_text(man_page(root), encoding="utf-8")
            console.done(f"wrote {output}", as_json=as_json, written=output)
        elif as_json:
            console.show(declared(root), as_json=True)
        else:
            print(man_page(root), end="")
