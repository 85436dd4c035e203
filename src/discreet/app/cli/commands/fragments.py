"""`discreet fragments`: columns of one relation over several databases."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from discreet.app.cli import console
from discreet.app.cli.groups import add_group

_KeysArgument = Annotated[Path, typer.Argument(help="The controller's file, from `split`.")]


def add(app: typer.Typer) -> None:
    """Register the commands."""
    group = add_group(app, "fragments", "Columns over several databases that cannot join them.")
    for command in (split, ask, cloud):
        group.command()(command)


def split(
    source: Annotated[str, typer.Argument(help="The records: a file or an address of a table.")],
    keys: Annotated[Path, typer.Argument(help="Where the controller's file is written.")],
    cloud: Annotated[
        list[str],
        typer.Option(help="A database, duckdb:///file.db or postgresql://…; two or more."),
    ],
    forbid: Annotated[
        list[str] | None,
        typer.Option(help="Two columns that no database may hold: name,diagnosis."),
    ] = None,
    identifier: Annotated[
        list[str] | None, typer.Option(help="A column that names people.")
    ] = None,
    quasi: Annotated[
        list[str] | None, typer.Option(help="A column by which people are known to others.")
    ] = None,
    confidential: Annotated[list[str] | None, typer.Option(help="A column to keep secret.")] = None,
    largest_risk: Annotated[
        float,
        typer.Option(help="Largest share of records that the columns of one database single out."),
    ] = 0.05,
    as_json: console.JsonOption = False,
) -> None:
    """Put the columns into databases, so that none holds two that may not meet.

    [bold]discreet fragments split people.csv keys.json --cloud duckdb:///a.db --cloud duckdb:///b.db
    --forbid name,diagnosis[/bold]
    """
    from discreet.data.dataset import read
    from discreet.protocols.fragments.splitting import fragment

    given = {"identifier": identifier, "quasi": quasi, "confidential": confidential}
    roles = {name: role for role, names in given.items() for name in names or ()}
    data = read(source, roles=roles)

    def unique(columns: Sequence[str]) -> float:
        counts = data.frequencies(list(columns)).column("count").to_pylist()
        return sum(1 for one in counts if one == 1) / max(len(data), 1)

    pairs = [tuple(one.split(",")) for one in forbid or ()]
    found = fragment(
        data,
        cloud,
        keys=keys,
        forbidden=pairs,
        risk=unique,
        largest_risk=largest_risk,
    )
    lines = [(place + 1, ", ".join(columns)) for place, columns in enumerate(found.columns)]
    if as_json:
        console.show({"columns": [list(columns) for columns in found.columns]}, as_json=True)
    else:
        console.show((("database", "columns"), lines))
    console.note(f"keep {keys} to yourself: only with it records can be put together")


def ask(
    keys: _KeysArgument,
    sql: Annotated[str, typer.Argument(help="One SELECT over the relation.")],
    learned: Annotated[
        bool, typer.Option("--learned", help="Also say what each database was asked and learns.")
    ] = False,
    as_json: console.JsonOption = False,
) -> None:
    """Answer a statement through the controller.

    [bold]discreet fragments ask keys.json "SELECT zip, AVG(debt) FROM people GROUP BY zip"[/bold]
    """
    from discreet.protocols.fragments.asking import Fragments

    found = Fragments.open(keys).ask(sql)
    console.show(found, as_json=as_json)
    if learned and not as_json:
        lines = [(one, said) for one, several in found.asked.items() for said in several]
        console.show((("database", "was asked"), lines))
        console.show(found.leakage, as_json=False)


def cloud(
    circle: Annotated[
        Path, typer.Argument(help="The file that names the controller and all such programs.")
    ],
    database: Annotated[
        str,
        typer.Argument(
            envvar="DISCREET_FRAGMENT_DATABASE",
            help="The database beside it, duckdb:///file.db or postgresql://….",
        ),
    ],
    as_: Annotated[str, typer.Option("--as", help="Which party of the file this is.")],
    key: Annotated[
        Path | None, typer.Option(help="Its private key; by default beside its certificate.")
    ] = None,
    as_json: console.JsonOption = False,
) -> None:
    """Multiply columns of a fragment for the controller, beside its database, until told to stop.

    [bold]discreet fragments cloud circle.yaml duckdb:///one.db --as one[/bold]
    """
    from discreet.protocols.fragments.circle import Circle
    from discreet.protocols.fragments.serving import CloudServer

    found = Circle.read(circle)
    with CloudServer(found, as_, database, key):
        address = found.parties[as_].address
        console.done(f"{as_} listens at {address}", as_json=as_json, party=as_, address=address)
        threading.Event().wait()
