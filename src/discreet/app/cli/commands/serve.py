"""`discreet serve` and `discreet user`: the gateway on the network."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.app.cli import console
from discreet.app.cli.allowing import AllowOption, PasswordOption, password_in

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
        allow: AllowOption = None,
        password_from: PasswordOption = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Serve a policy's gateways: PostgreSQL's protocol and HTTP/JSON in one process.

        Any PostgreSQL client connects: psql, psycopg, SQLAlchemy, BI tools. TLS is always on.
        """
        from discreet.app.server.from_policy import serve_demo, serve_policy

        if policy is not None:

            def ready(at: Addresses) -> None:
                _tell(at, as_json=as_json)

            serve_policy(
                policy, started=ready, allow=allow or (), password=password_in(password_from)
            )
            return

        def tell(at: Addresses, password: str) -> None:
            entry = {"user": "demo", "password": password, "database": "discreet"}
            _tell(at, as_json=as_json, **entry)
            if not as_json:
                console.note(
                    f"  user demo, password {password}, database discreet, sslmode=require"
                )
                console.note("  ask    SELECT sex, COUNT(*), AVG(salary) FROM people GROUP BY sex")

        serve_demo(rows, started=tell)

    @app.command()
    def user(
        name: Annotated[str, typer.Argument(help="The user's name.")],
        role: Annotated[list[str] | None, typer.Option(help="A role; repeatable.")] = None,
        policy: Annotated[
            Path | None,
            typer.Option(help="Add the user to this policy file; its comments stay."),
        ] = None,
        password: Annotated[
            str | None,
            typer.Option(
                help="The password; others on this machine see it, so leave it out to be asked.",
                envvar="DISCREET_PASSWORD",
                show_envvar=False,
            ),
        ] = None,
        password_stdin: Annotated[
            bool,
            typer.Option("--password-stdin", help="Read the password from standard input."),
        ] = False,
        as_json: console.JsonOption = False,
    ) -> None:
        """Let somebody in: print the lines of a policy, or add them to one with --policy.

        The password is asked for, read from DISCREET_PASSWORD, or from standard input; it is
        not stored.
        """
        import argon2
        import yaml

        from discreet.app.policy.users import with_user
        from discreet.app.server.postgres.scram import make_verifier
        from discreet.data.atomic import atomic_file

        password = _password(password, stdin=password_stdin)
        entry = {
            "roles": role or ["analyst"],
            "password": argon2.PasswordHasher().hash(password),
            "scram": str(make_verifier(password)),
        }
        if policy is None:
            lines = {"server": {"users": {name: entry}}}
            if as_json:
                console.show(lines, as_json=True)
                return
            print(yaml.safe_dump(lines, sort_keys=False, allow_unicode=True), end="")
            return
        text = with_user(policy, name, entry)
        with atomic_file(policy) as file:
            file.write_text(text, encoding="utf-8")
        console.done(
            f"{name} may ask; {policy} was changed, and a running server reads it when it starts again",
            as_json=as_json,
            user=name,
            roles=entry["roles"],
            policy=policy,
        )


def _password(given: str | None, *, stdin: bool) -> str:
    """Return the password of a new user: from standard input, the caller or a prompt."""
    import sys

    from discreet.errors import InputError

    if stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        password = given or typer.prompt(
            "Password", hide_input=True, confirmation_prompt=True, err=True
        )
    if len(password) < 8:
        raise InputError(
            "the password is too short", code="weak-password", hint="use 8 characters or more"
        )
    return password


def _tell(at: Addresses, *, as_json: bool, **entry: str) -> None:
    if as_json:
        console.done("", as_json=True, **dataclasses.asdict(at), **entry)
        return
    console.note("serving until interrupted; every answer is in the ledger before it leaves")
    console.note(f"  PostgreSQL protocol on port {at.postgres} (TLS, SCRAM-SHA-256)")
    console.note(f"  HTTPS on port {at.http}; open https://localhost:{at.http}/ in a browser")
    if at.certificate is not None:
        console.note(f"  certificate made for this run, for clients to trust: {at.certificate}")
