"""`discreet ledger`: look into what was released and spent, and check that nothing is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.app.cli import console

if TYPE_CHECKING:
    from discreet.ledger.store import Ledger

LedgerArgument = Annotated[str, typer.Argument(help="The ledger: a file, or postgresql://…")]


def add(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="Everything released and spent.", no_args_is_help=True)
    app.add_typer(group, name="ledger")
    for command in (inspect, releases, facts, audit, budget, grant, prove, migrate, verify, export):
        group.command()(command)


def inspect(
    ledger: LedgerArgument,
    user: Annotated[str | None, typer.Option(help="Only this user's entries.")] = None,
    last: Annotated[int, typer.Option(min=1, help="How many, from the end.")] = 50,
    as_json: console.JsonOption = False,
) -> None:
    """List entries: who asked what, when, and what kind of answer it was."""
    from collections import deque

    with _opened(ledger) as book:
        chosen = deque((e for e in book.entries() if user is None or e.user == user), maxlen=last)
    header = ("number", "time", "dataset", "user", "kind", "question")
    rows = [(e.number, e.time, e.dataset, e.user, e.kind, e.question) for e in chosen]
    console.show((header, rows), as_json=as_json)


def releases(
    ledger: LedgerArgument,
    dataset: Annotated[str | None, typer.Option(help="Only about this dataset.")] = None,
    as_json: console.JsonOption = False,
) -> None:
    """List releases: what was published about which records, and whether it appeared.

    [bold]discreet ledger releases ledger.db[/bold]
    """
    from discreet.ledger.overview import releases as listed

    with _opened(ledger) as book:
        console.show(listed(book, dataset), as_json=as_json)


def facts(
    ledger: LedgerArgument,
    number: Annotated[int, typer.Argument(help="The number of a release.")],
    as_json: console.JsonOption = False,
) -> None:
    """Show what a release told, as later ones are judged by it.

    [bold]discreet ledger facts ledger.db 3[/bold]
    """
    from discreet.ledger.overview import facts as told

    with _opened(ledger) as book:
        console.show(told(book, number), as_json=as_json)


def audit(
    ledger: LedgerArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="HTML page for the curator.")
    ] = None,
    as_json: console.JsonOption = False,
) -> None:
    """Compute what all releases tell together; exits with 3 if that is too much.

    [bold]discreet ledger audit ledger.db -o joint.html[/bold]
    """
    from discreet.data.atomic import atomic_file
    from discreet.tables.joint_audit import joint_audit

    with _opened(ledger) as book:
        found = joint_audit(book)
    console.show(found, as_json=as_json)
    console.note(found.verdict)
    if output is not None:
        with atomic_file(output, private=True) as temporary:
            temporary.write_text(found.page(), encoding="utf-8")
        console.note(f"wrote {output}, for you only")
    if not found.safe:
        raise typer.Exit(3)


def budget(
    ledger: LedgerArgument,
    dataset: Annotated[str | None, typer.Option(help="Only this dataset.")] = None,
    as_json: console.JsonOption = False,
) -> None:
    """Show what all releases and answers spent together, and what is left of the grant.

    [bold]discreet ledger budget ledger.db[/bold]
    """
    from discreet.dp.grant import granted
    from discreet.ledger.overview import datasets

    header = ("dataset", "granted", "delta", "accountant", "spent", "left", "events")
    rows: list[tuple[object, ...]] = []
    with _opened(ledger) as book:
        for name in datasets(book):
            events, grant = book.spent(name, "dataset"), granted(book, name)
            if (dataset is not None and name != dataset) or (grant is None and not events):
                continue
            many = sum(events.values())
            if grant is None:
                rows.append((name, "", "", "", "", "", many))
                continue
            spent = grant.spent(events)
            left = max(grant.epsilon - spent, 0.0)
            rows.append((name, grant.epsilon, grant.delta, grant.accountant, spent, left, many))
    console.show((header, rows), as_json=as_json)


def grant(
    ledger: LedgerArgument,
    dataset: Annotated[str, typer.Argument(help="The dataset, by its name.")],
    epsilon: Annotated[float, typer.Option(help="What all releases may spend together.")],
    delta: Annotated[float, typer.Option(help="The δ at which ε is stated.")] = 0.0,
    accountant: Annotated[
        str, typer.Option(help="basic, zcdp, rdp or pld: how events are added up.")
    ] = "basic",
    as_json: console.JsonOption = False,
) -> None:
    """Say how much privacy all releases about a dataset may spend together.

    [bold]discreet ledger grant ledger.db people --epsilon 2[/bold]
    """
    from discreet.dp.caution import caution
    from discreet.dp.grant import Grant
    from discreet.ledger.opening import open_ledger

    granted = Grant(epsilon, delta, accountant)  # type: ignore[arg-type]  # checked by it
    with open_ledger(ledger) as book:
        book.set_grant(dataset, granted.to_dict())
    console.done(
        f"{dataset} may spend ε = {epsilon:g} in all",
        as_json=as_json,
        dataset=dataset,
        **granted.to_dict(),
    )
    if warning := caution(epsilon):
        console.note(f"caution: {warning}")


def prove(
    ledger: LedgerArgument,
    number: Annotated[int, typer.Argument(help="The number of an entry.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the proof goes.")],
    sign: Annotated[
        Path | None, typer.Option(help="Key that signs it, made by discreet key new.")
    ] = None,
    as_json: console.JsonOption = False,
) -> None:
    """Show that an entry lies under the ledger's head, without showing any other.

    [bold]discreet ledger prove ledger.db 3 -o proof.json --sign ledger.pem[/bold]
    """
    from discreet.ledger.overview import write_proof

    with _opened(ledger) as book:
        written = write_proof(book, number, output, sign=sign)
    console.done(f"wrote {written}", as_json=as_json, written=written, entry=number)


def migrate(ledger: LedgerArgument, as_json: console.JsonOption = False) -> None:
    """Bring a ledger of an older version up to this one, in one transaction."""
    from discreet.ledger.opening import open_ledger

    _require_file(ledger)
    with open_ledger(ledger):
        console.done("the ledger is up to date", as_json=as_json, up_to_date=True)


def verify(
    ledger: LedgerArgument,
    head: Annotated[str | None, typer.Option(help="A head noted earlier.")] = None,
    as_json: console.JsonOption = False,
) -> None:
    """Walk the hash chain and add up the budgets; exits with 1 if something is wrong."""
    with _opened(ledger) as book:
        found = book.verify(head=head)
    console.show(found, as_json=as_json)
    if not found.intact:
        raise typer.Exit(1)


def export(
    ledger: LedgerArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="JSON lines.")],
    as_json: console.JsonOption = False,
) -> None:
    """Write all entries as JSON lines."""
    with _opened(ledger) as book:
        written = book.export(output)
    console.done(f"wrote {written}", as_json=as_json, written=written)


def _opened(place: str) -> Ledger:
    from discreet.ledger.opening import open_ledger

    _require_file(place)
    return open_ledger(place, read_only=True)


def _require_file(place: str) -> None:
    from discreet.errors import InputError

    if "://" not in place and not Path(place).exists():
        raise InputError(
            "there is no such ledger", code="no-ledger", file=place, hint="check the path"
        )
