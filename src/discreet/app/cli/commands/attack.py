"""`discreet attack`: try the attacks on a policy's gateways before somebody else does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.app.cli import console
from discreet.app.cli.allowing import AllowOption, PasswordOption, password_in


def add(app: typer.Typer) -> None:
    """Register the command."""

    @app.command()
    def attack(
        policy: Annotated[Path, typer.Argument(help="The policy file with `gateways:`.")],
        column: Annotated[
            str | None, typer.Option(help="The confidential column the attacker is after.")
        ] = None,
        victim: Annotated[
            str | None,
            typer.Option(
                help='What the attacker knows: a condition on public columns, "age = 41 AND '
                "region = 'TGN'\"."
            ),
        ] = None,
        release: Annotated[
            str | None,
            typer.Option(help="Attack this release, a consistent table (top-down), not gateways."),
        ] = None,
        group: Annotated[
            str | None,
            typer.Option(help="A condition the victim meets with others; one is chosen."),
        ] = None,
        other: Annotated[
            str | None,
            typer.Option(help="A condition that splits the people; one is chosen."),
        ] = None,
        only: Annotated[
            list[str] | None, typer.Option("--attack", help="Only this attack; may be repeated.")
        ] = None,
        guard: Annotated[
            list[str] | None,
            typer.Option(help="Another guard, as a policy writes it: 'restriction: {k: 3}'."),
        ] = None,
        allow: AllowOption = None,
        password_from: PasswordOption = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Run every attack on the raw data and under each guard, and compare with the truth.

        Every attack meets a fresh ledger in memory: nothing is charged, nothing is recorded. The
        output holds what the attacker would know; it is for the curator. With --release, a
        consistent table is rehearsed, and attacked beside its exact counts.
        """
        from discreet.app.attacking import Attempted, attack_policy
        from discreet.app.attacking_tables import attack_release
        from discreet.errors import InputError

        if release is not None:
            with console.progress() as progress:
                tried = attack_release(
                    policy,
                    release,
                    attacks=only,
                    allow=allow or (),
                    password=password_in(password_from),
                    progress=progress,
                )
            console.show(tried, as_json=as_json)
            if not tried.withstood:
                raise typer.Exit(3)
            return
        if column is None or victim is None:
            raise InputError(
                "an attack on gateways is on a column of one person",
                code="no-victim",
                hint="write --column salary --victim \"age = 41 AND region = 'TGN'\", or --release "
                "NAME for a table",
                parameter="victim",
            )
        with console.progress() as progress:
            found: Attempted = attack_policy(
                policy,
                column=column,
                condition=victim,
                group=group,
                other=other,
                attacks=only,
                guards=guard or [],
                allow=allow or (),
                password=password_in(password_from),
                progress=progress,
            )
        console.show(found, as_json=as_json)
        if not found.withstood:
            raise typer.Exit(3)
