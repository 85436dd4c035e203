"""`discreet joint`: owners compute together; each party is a process of its own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.app.cli import console
from discreet.app.cli.allowing import AllowOption, PasswordOption, password_in
from discreet.app.cli.groups import add_group

if TYPE_CHECKING:
    from discreet.app.policy.model import Policy
    from discreet.protocols.joint.declaration import JointPolicy

_PolicyArgument = Annotated[Path, typer.Argument(help="The policy file, with its section `joint`.")]
_AsOption = Annotated[str, typer.Option("--as", help="Which party of the policy this is.")]
_KeyOption = Annotated[
    Path | None, typer.Option(help="Its private key; by default beside its certificate.")
]
_LearnedOption = Annotated[
    bool, typer.Option("--learned", help="Also say what each party learned.")
]
_LedgerOption = Annotated[
    str, typer.Option(help="Where every run is recorded before anything leaves.")
]


def add(app: typer.Typer) -> None:
    """Register the commands."""
    group = add_group(app, "joint", "Owners compute together and see only what was agreed.")
    for command in (owner, node, dealer, ask, run, verify):
        group.command()(command)


def owner(
    policy: _PolicyArgument,
    as_: _AsOption,
    ledger: _LedgerOption,
    key: _KeyOption = None,
    allow: AllowOption = None,
    password_from: PasswordOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Take part with the records of the policy's section `data`, until told to stop.

    [bold]discreet joint owner a.yaml --as hospital-a --ledger a.db[/bold]
    """
    from discreet.app.policy.access import permitted_policy
    from discreet.app.policy.run import open_source

    found, _ = permitted_policy(policy, allow=allow or (), password=password_in(password_from))
    _serve(_joint(found, policy), as_, ledger, key, data=open_source(found), as_json=as_json)


def node(
    policy: _PolicyArgument,
    as_: _AsOption,
    ledger: _LedgerOption,
    key: _KeyOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Compute on shares without records of one's own, until told to stop.

    [bold]discreet joint node joint.yaml --as node --ledger node.db[/bold]
    """
    from discreet.app.policy.access import permitted_policy

    found, _ = permitted_policy(policy)
    _serve(_joint(found, policy), as_, ledger, key, data=None, as_json=as_json)


def dealer(
    policy: _PolicyArgument,
    as_: _AsOption,
    ledger: _LedgerOption,
    key: _KeyOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Deal masks, compare codes and add masked parts for the owners, until told to stop.

    [bold]discreet joint dealer joint.yaml --as dealer --ledger dealer.db[/bold]
    """
    node(policy, as_, ledger, key, as_json=as_json)


def run(
    policy: _PolicyArgument,
    computation: Annotated[str, typer.Argument(help="Its name under `computations`.")],
    as_: _AsOption = "analyst",
    key: _KeyOption = None,
    page: Annotated[Path | None, typer.Option(help="Write a page of it to this file.")] = None,
    learned: _LearnedOption = False,
    as_json: console.JsonOption = False,
) -> None:
    """Make a computation that the owners agreed on: a sum, a product, a regression, clusters.

    [bold]discreet joint run joint.yaml income-on-age[/bold]
    """
    from discreet.app.policy.access import permitted_policy
    from discreet.data.atomic import atomic_file
    from discreet.protocols.joint.analyst import Joint

    found, _ = permitted_policy(policy)
    with Joint(_joint(found, policy), as_, key=key) as joint:
        result = joint.run(computation)
    if page is not None:
        with atomic_file(page) as file:
            file.write_text(result.page().html(), encoding="utf-8")
    console.show(result, as_json=as_json)
    if learned and not as_json:
        console.show(result.leakage, as_json=False)
    if result.caution:
        console.note(f"caution: {result.caution}")


def ask(
    policy: _PolicyArgument,
    sql: Annotated[str, typer.Argument(help="SELECT keys, COUNT, SUM, AVG … GROUP BY keys.")],
    as_: _AsOption = "analyst",
    key: _KeyOption = None,
    totals: Annotated[
        bool, typer.Option("--totals", help="Also totals over the last key, the last two, ….")
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option(help="Write the table, its evidence and a page into this new folder."),
    ] = None,
    margins: Annotated[
        bool,
        typer.Option("--margins", help="All totals; further cells are withheld to protect others."),
    ] = False,
    learned: _LearnedOption = False,
    as_json: console.JsonOption = False,
) -> None:
    """Ask all owners one question; only cells that no rule finds sensitive are opened.

    [bold]discreet joint ask joint.yaml "SELECT icd, COUNT(*), SUM(cost) FROM stays GROUP BY icd"[/bold]
    """
    from discreet.app.policy.access import permitted_policy
    from discreet.protocols.joint.analyst import Joint

    found, _ = permitted_policy(policy)
    with Joint(_joint(found, policy), as_, key=key) as joint:
        table = joint.ask(sql, totals=totals, margins=margins)
    if write is not None:
        table.write(write)
    console.show(table, as_json=as_json)
    if learned and not as_json:
        console.show(table.leakage, as_json=False)
    console.note(f"{table.withheld} of {len(table.frame)} cells and totals withheld")


def verify(
    ledgers: Annotated[list[str], typer.Argument(help="The ledgers of several parties.")],
    as_json: console.JsonOption = False,
) -> None:
    """Compare what parties recorded: transcripts must agree and nothing else was opened.

    Exit code 3 if something speaks against it.
    [bold]discreet joint verify a.db b.db c.db[/bold]
    """
    from discreet.protocols.joint.verification import verify_ledgers

    found = verify_ledgers(ledgers)
    console.show(found, as_json=as_json)
    console.note(found.verdict)
    if not found.agrees:
        raise typer.Exit(3)


def _joint(policy: Policy, path: Path) -> JointPolicy:
    from discreet.errors import InputError

    if policy.joint is None:
        raise InputError(
            "the policy has no section `joint`",
            code="no-joint",
            hint="add `joint:` with parties, owners, nodes, keys and rules",
            file=path,
        )
    return policy.joint


def _serve(
    policy: JointPolicy,
    name: str,
    ledger: str,
    key: Path | None,
    *,
    data: object,
    as_json: bool,
) -> None:
    from discreet.ledger.opening import open_ledger
    from discreet.protocols.joint.party import Party

    with (
        open_ledger(ledger) as opened,
        Party(policy, name, ledger=opened, data=data, key=key),  # type: ignore[arg-type]  # a dataset
    ):
        address = policy.parties[name].address
        console.done(f"{name} listens at {address}", as_json=as_json, party=name, address=address)
        threading.Event().wait()
