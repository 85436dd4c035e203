"""`discreet serve` and `discreet user`: the gateway on the network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.app.cli import console

if TYPE_CHECKING:
    from discreet.app.server.run import Addresses


def add(app: typer.Typer) -> None:
    """Register the commands."""

    @app.command()
    def serve(
        policy: Annotated[
            Path | None,
            typer.Argument(help="The policy file; without one the embedded population is served."),
        ] = None,
        rows: Annotated[
            int, typer.Option(min=100, help="Persons in the embedded population.")
        ] = 100_000,
    ) -> None:
        """Serve a policy's gateways: PostgreSQL's protocol and HTTP/JSON in one process.

        Any PostgreSQL client connects: psql, psycopg, SQLAlchemy, BI tools. TLS is always on.
        """
        from discreet.app.server.from_policy import serve_demo, serve_policy

        if policy is not None:
            serve_policy(policy, started=_tell)
            return

        def tell(at: Addresses, password: str) -> None:
            _tell(at)
            console.note(f"  user demo, password {password}, database discreet, sslmode=require")
            console.note("  ask    SELECT sex, COUNT(*), AVG(salary) FROM people GROUP BY sex")

        serve_demo(rows, started=tell)

    @app.command()
    def user(
        name: Annotated[str, typer.Argument(help="The user's name.")],
        role: Annotated[list[str] | None, typer.Option(help="A role; repeatable.")] = None,
        password: Annotated[
            str,
            typer.Option(
                prompt=True,
                hide_input=True,
                confirmation_prompt=True,
                envvar="DISCREET_PASSWORD",
                help="Asked for if left out; it is not stored.",
            ),
        ] = "",
    ) -> None:
        """Print the lines of a policy that let somebody in; the password itself is not in them."""
        import argon2

        from discreet.app.server.postgres.scram import make_verifier
        from discreet.errors import InputError

        if len(password) < 8:
            raise InputError(
                "the password is too short", code="weak-password", hint="use 8 characters or more"
            )
        import yaml

        entry = {
            name: {
                "roles": role or ["analyst"],
                "password": argon2.PasswordHasher().hash(password),
                "scram": str(make_verifier(password)),
            }
        }
        print(
            yaml.safe_dump({"server": {"users": entry}}, sort_keys=False, allow_unicode=True),
            end="",
        )


def _tell(at: Addresses) -> None:
    console.note("serving until interrupted; every answer is in the ledger before it leaves")
    console.note(f"  PostgreSQL protocol on port {at.postgres} (TLS, SCRAM-SHA-256)")
    console.note(f"  HTTPS on port {at.http}; documentation at /docs")
    if at.certificate is not None:
        console.note(f"  certificate made for this run, for clients to trust: {at.certificate}")
