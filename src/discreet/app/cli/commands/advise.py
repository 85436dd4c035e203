"""`discreet advise`: three policies to choose from, measured on the data."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.app.cli import console


def add(app: typer.Typer) -> None:
    """Register the command."""
    from discreet.app.cli.from_job import with_reading

    app.command()(with_reading(advise))


def add_stub(app: typer.Typer) -> None:
    """Register its name and its help: the options of a source take time to load."""

    @app.command("advise", help=advise.__doc__)
    def stub() -> None:
        """Stand for the command where another one is typed."""


def advise(
    file: Annotated[str, typer.Argument(help="The file of records.", metavar="FILE")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the policies and a page."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="anonymize (a file of records, the default) or table."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="No trial begins after so many seconds.", min=0)
    ] = 60.0,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="How the file is read, such as sheet=Data or dates=day; repeatable."
        ),
    ] = None,
    as_json: console.JsonOption = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Try models, methods or breakdowns on a file and propose three; releases nothing.

    [bold]discreet advise people.csv -o advice --seconds 60[/bold]
    """
    from discreet.app.cli.commands.init import require_kind
    from discreet.app.policy.advice import advise as advise_on
    from discreet.app.policy.advice import start_of, write_advice
    from discreet.data.source import Source
    from discreet.registry import build

    require_kind(kind)
    said = dict(text.partition("=")[::2] for text in setting or ())
    source = build(Source, {"source": file, **said}, path=("data",))
    source = dataclasses.replace(source, **reading)
    with console.progress() as progress:
        found = advise_on(source, kind=kind, seconds=seconds, progress=progress)
        files = [] if output is None else write_advice(found, output)
    console.show(found, as_json=as_json)
    for written in files:
        console.note(f"wrote {written}")
    if found.candidates and files:
        console.note(
            f"read one, then: discreet release {files[0]} --folder {start_of(source)} -o out"
        )
