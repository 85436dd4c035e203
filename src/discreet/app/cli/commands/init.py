"""`discreet init`: a policy to start from, made from a file and written beside it."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.app.cli import console
from discreet.errors import InputError


def require_kind(kind: str | None) -> None:
    """Refuse a kind of release that no policy is started for."""
    if kind not in (None, "anonymize", "table"):
        raise InputError(
            f"there is no kind {kind!r} to start from",
            code="unknown-kind",
            hint="write --kind anonymize or --kind table",
        )


def add(app: typer.Typer) -> None:
    """Register the command."""
    from discreet.app.cli.from_job import with_reading

    app.command()(with_reading(init))


def add_stub(app: typer.Typer) -> None:
    """Register its name and its help: the options of a source take time to load."""

    @app.command("init", help=init.__doc__)
    def stub() -> None:
        """Stand for the command where another one is typed."""


def init(
    file: Annotated[str, typer.Argument(help="The file of records.", metavar="FILE")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the policy is written.")
    ] = Path("policy.yaml"),
    kind: Annotated[
        str | None,
        typer.Option(help="anonymize (a file of records, the default) or table."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="How the file is read, such as sheet=Data or dates=day; repeatable."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier policy.")] = False,
    as_json: console.JsonOption = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Write a policy to start from: roles, hierarchies and a release, with the reasons.

    Columns of which nothing is sure are held back and listed; nothing is released.

    [bold]discreet init people.csv -o policy.yaml[/bold], then discreet release policy.yaml
    """
    from discreet.app.policy.starting import starting_policy
    from discreet.data.addresses import without_passwords
    from discreet.data.atomic import atomic_file
    from discreet.data.source import Source
    from discreet.registry import build, is_address

    require_kind(kind)
    if output.exists() and not force:
        raise InputError(
            "there is a policy already",
            code="file-exists",
            hint="choose another name with -o, or replace it with --force",
            file=output,
        )
    said = dict(text.partition("=")[::2] for text in setting or ())
    source = build(Source, {"source": file, **said}, path=("data",))
    source = dataclasses.replace(source, **reading)
    with console.progress():
        start = starting_policy(source, output, kind=kind)
    with atomic_file(output) as place:
        place.write_text(start.policy, encoding="utf-8")
    console.show(start, as_json=as_json)
    home = output.absolute().parent.resolve()
    is_inside = not is_address(file) and Path(file).resolve().is_relative_to(home)
    # A policy may read files of its own folder; the caller allows all others, and databases.
    address = without_passwords(file).partition("#")[0]
    allowed = "" if is_inside else f" --allow {shlex.quote(address)}"
    console.note(f"wrote {output}; read it, then: discreet release {output}{allowed} -o out")
