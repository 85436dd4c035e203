"""`discreet gateway`: ask a policy's gateway from the command line, or have it explain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.app.cli import console
from discreet.app.cli.allowing import AllowOption, PasswordOption, password_in

if TYPE_CHECKING:
    from discreet.queries.gateway import Gateway

PolicyArgument = Annotated[Path, typer.Argument(help="The policy file with `gateways:`.")]
SqlArgument = Annotated[str, typer.Argument(help="A statistical SELECT.")]
UserOption = Annotated[str, typer.Option("--user", "-u", help="Who asks; budgets are per user.")]
GateOption = Annotated[
    str | None, typer.Option("--gateway", "-g", help="Which gateway, if there are several.")
]


def add(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="Ask under a guard; everything is remembered.", no_args_is_help=True)
    app.add_typer(group, name="gateway")

    @group.command()
    def ask(
        policy: PolicyArgument,
        sql: SqlArgument,
        user: UserOption = "curator",
        gateway: GateOption = None,
        allow: AllowOption = None,
        password_from: PasswordOption = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Answer one question; the ledger holds it before it is printed."""
        with _open(policy, gateway, allow, password_in(password_from)) as gate:
            answer = gate.ask(sql, user=user)
        console.show(answer, as_json=as_json)
        if answer.refused:
            raise typer.Exit(3)

    @group.command()
    def explain(
        policy: PolicyArgument,
        sql: SqlArgument,
        user: UserOption = "curator",
        gateway: GateOption = None,
        allow: AllowOption = None,
        password_from: PasswordOption = None,
        as_json: console.JsonOption = False,
    ) -> None:
        """Say what an answer would be and cost, without asking."""
        with _open(policy, gateway, allow, password_in(password_from)) as gate:
            console.show(gate.explain(sql, user=user), as_json=as_json)


def _open(
    path: Path, name: str | None, allow: Sequence[str] | None, password: str | None
) -> Gateway:
    from discreet.app.policy.access import permitted_policy
    from discreet.app.policy.histories import require_one_history
    from discreet.app.policy.run import open_source
    from discreet.errors import InputError

    policy, _ = permitted_policy(path, allow=allow or (), password=password)
    require_one_history(policy, path)
    if not policy.gateways or (name is not None and name not in policy.gateways):
        known = ", ".join(policy.gateways) or "none"
        raise InputError(
            f"the policy has no gateway {name!r}" if name else "the policy declares no gateway",
            code="no-gateway",
            hint=f"add `gateways:`; there are: {known}",
            file=path,
        )
    if name is None and len(policy.gateways) > 1:
        raise InputError(
            "the policy declares several gateways",
            code="several-gateways",
            hint="choose with --gateway: " + ", ".join(policy.gateways),
            file=path,
        )
    service = policy.gateways[name] if name else next(iter(policy.gateways.values()))
    gate: Gateway = service.open(open_source(policy), path.parent)
    return gate
