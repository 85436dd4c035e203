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

    @group.command()
    def inspect(
        ledger: LedgerArgument,
        user: Annotated[str | None, typer.Option(help="Only this user's entries.")] = None,
        last: Annotated[int, typer.Option(min=1, help="How many, from the end.")] = 50,
        as_json: console.JsonOption = False,
    ) -> None:
        """List entries: who asked what, when, and what kind of answer it was."""
        from collections import deque

        with _opened(ledger) as book:
            chosen = deque(
                (e for e in book.entries() if user is None or e.user == user), maxlen=last
            )
        header = ("number", "time", "dataset", "user", "kind", "question")
        rows = [(e.number, e.time, e.dataset, e.user, e.kind, e.question) for e in chosen]
        console.show((header, rows), as_json=as_json)

    @group.command()
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

    @group.command()
    def export(
        ledger: LedgerArgument,
        output: Annotated[Path, typer.Option("--output", "-o", help="JSON lines.")],
    ) -> None:
        """Write all entries as JSON lines."""
        with _opened(ledger) as book:
            console.note(f"wrote {book.export(output)}")


def _opened(place: str) -> Ledger:
    from discreet.errors import InputError
    from discreet.ledger.opening import open_ledger

    if "://" not in place and not Path(place).exists():
        raise InputError(
            "there is no such ledger", code="no-ledger", file=place, hint="check the path"
        )
    return open_ledger(place, read_only=True)
