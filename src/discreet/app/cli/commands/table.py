"""`discreet table new-key` and `table plan`, which read no records; the others are jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.app.cli import console
from discreet.app.cli.groups import add_group


def add(app: typer.Typer) -> None:
    """Register the command."""
    group = add_group(app, "table")
    group.command("new-key")(_new_key)
    group.command("plan")(_plan)


def _new_key(
    file: Annotated[Path, typer.Argument(help="Where the key is written.")],
    as_json: console.JsonOption = False,
) -> None:
    """Write a secret key for cell-key and record noise and for --key; keep it to yourself."""
    from discreet.data.keys import write_key_file

    secret = write_key_file(file)
    console.done(f"wrote {secret}, readable by you only", as_json=as_json, private=secret)


def _plan(
    hierarchy: Annotated[
        list[str],
        typer.Option(help="attribute=file for every attribute; the first is the tree of places."),
    ],
    method: Annotated[
        str, typer.Option(help="The method with its settings: 'top-down rho=1 split=leaf-heavy'.")
    ] = "top-down",
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="LEVEL:QUERY=ERROR that is not to be exceeded; the least ρ is looked for."
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the expected errors into this SVG file.")
    ] = None,
    as_json: console.JsonOption = False,
) -> None:
    """Say how exact a consistent table will be, or find the split that meets targets.

    Reads no records and spends nothing.
    [bold]discreet table plan --hierarchy region=region.csv --target 1:total=5[/bold]
    """
    from discreet.app.cli.members import parse_member
    from discreet.data.atomic import atomic_file
    from discreet.data.declared import read_hierarchies
    from discreet.data.table import Dimension
    from discreet.errors import InputError
    from discreet.tables.methods import TableMethod
    from discreet.tables.methods._places import Places
    from discreet.tables.methods.top_down import TopDown

    made = parse_member(TableMethod, method)
    if not isinstance(made, TopDown):
        raise InputError(
            f"the errors of {made.name} cannot be told without records",
            code="unplannable-method",
            hint="write --method 'top-down rho=1'",
            parameter="method",
        )
    wanted: dict[str, dict[str, float]] = {}
    for text in target or ():
        level, _, rest = text.partition(":")
        query, _, number = rest.partition("=")
        try:
            wanted.setdefault(level, {})[query] = float(number)
        except ValueError:
            raise InputError(
                f"{text!r} is not a target",
                code="bad-target",
                hint="write LEVEL:QUERY=ERROR, such as 1:total=5",
                parameter="target",
            ) from None
    dimensions = tuple(
        Dimension.of(name, tree) for name, tree in read_hierarchies(hierarchy).items()
    )
    place = made.place_of(tuple(dimension.name for dimension in dimensions))
    found = made.planned(Places.of(dimensions, place), wanted)
    if picture is not None:
        with atomic_file(picture) as file:
            file.write_text(found.picture(), encoding="utf-8")
    console.show(found, as_json=as_json)
    if not as_json:
        console.note(
            f"rho = {found.rho:g}, epsilon = {found.epsilon:.2f} at delta = {found.delta:g}"
        )
