"""`discreet ask`: a question to a served gateway, or to a permuted release."""

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
            Path | None,
            typer.Option("--release", "-r", help="Folder that `discreet permute` wrote."),
        ] = None,
        server: Annotated[
            str | None,
            typer.Option("--server", "-s", help="A served gateway: https://host:port."),
        ] = None,
        user: Annotated[
            str | None, typer.Option("--user", "-u", help="Who asks the server.")
        ] = None,
        certificate: Annotated[
            Path | None, typer.Option(help="The server's certificate, or its authority's (PEM).")
        ] = None,
        explain: Annotated[
            bool,
            typer.Option("--explain", help="Tell what the answer would be; ask and spend nothing."),
        ] = False,
        dialect: Annotated[
            str, typer.Option(help="With --release and --explain: duckdb, postgres or spark.")
        ] = "duckdb",
        as_json: console.JsonOption = False,
    ) -> None:
        """Ask a served gateway, or a permuted release, which answers with sure bounds.

        [bold]discreet ask --server https://localhost:8433 --user ana "SELECT COUNT(*) FROM people"[/bold]

        [bold]discreet ask --release out "SELECT AVG(salary) FROM people WHERE age < 30"[/bold]

        The password is asked for, or read from DISCREET_PASSWORD.
        """
        from discreet.errors import InputError

        if (release is None) == (server is None):
            raise InputError(
                "it is not said whom to ask" if server is None else "there are two to ask",
                code="whom-to-ask",
                hint="write either --server https://host:port or --release FOLDER",
            )
        if server is not None:
            _ask_server(sql, server, user, certificate, explain=explain, as_json=as_json)
            return
        from discreet.microdata.permutation.release import Permuted

        assert release is not None  # one of both was given
        safe = Permuted.read(release)
        if explain:
            console.show(safe.explain(sql, dialect=dialect))
            return
        console.show(safe.ask(sql), as_json=as_json)


def _ask_server(
    sql: str,
    server: str,
    user: str | None,
    certificate: Path | None,
    *,
    explain: bool,
    as_json: bool,
) -> None:
    import os

    from discreet.errors import InputError
    from discreet.queries.client import Client

    if user is None:
        raise InputError("it is not said who asks", code="no-user", hint="write --user NAME")
    password = os.environ.get("DISCREET_PASSWORD") or typer.prompt(
        f"Password of {user}", hide_input=True, err=True
    )
    with Client(server, user=user, password=password, certificate=certificate) as client:
        answer = client.ask(f"EXPLAIN {sql}" if explain else sql)
    console.show(answer, as_json=as_json)
    if answer.refused:
        raise typer.Exit(3)
