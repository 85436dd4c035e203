"""`discreet ask`: a query to a permuted release, answered with sure bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.app.cli import console


def add(app: typer.Typer) -> None:
    """Register the command."""

    @app.command()
    def ask(
        sql: Annotated[str, typer.Argument(help="A SELECT over the original table.")],
        release: Annotated[
            Path, typer.Option("--release", "-r", help="Folder that `discreet permute` wrote.")
        ],
        explain: Annotated[
            bool, typer.Option("--explain", help="Show the rewritten query; run nothing.")
        ] = False,
        dialect: Annotated[
            str, typer.Option(help="With --explain: duckdb, postgres or spark.")
        ] = "duckdb",
        as_json: console.JsonOption = False,
    ) -> None:
        """Answer a query from a release, with a lower and an upper bound for every aggregate.

        The truth always lies between the bounds; the estimate is model-based.
        [bold]discreet ask --release out "SELECT AVG(salary) FROM people WHERE age < 30"[/bold]
        """
        from discreet.microdata.permutation.release import Permuted

        safe = Permuted.read(release)
        if explain:
            console.show(safe.explain(sql, dialect=dialect))
            return
        console.show(safe.ask(sql), as_json=as_json)
