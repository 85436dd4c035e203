"""`discreet methods`: every family and its members."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.app.cli import console


def add(app: typer.Typer) -> None:
    """Register the command."""

    @app.command()
    def methods(
        name: Annotated[
            str | None,
            typer.Argument(help="A family (rule, masking, model, …) or a member; all if left out."),
        ] = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """List every rule, method, model, guard and attack, with its parameters and paper.

        [bold]discreet methods[/bold] lists all; [bold]discreet methods p-percent[/bold] tells one.
        """
        from discreet.app.catalogue import catalogue, member_page

        if name is None:
            console.show(catalogue(), as_json=as_json)
        else:
            console.show(member_page(name), as_json=as_json)
