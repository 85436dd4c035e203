"""`discreet gateway evaluate`: what guards cost and leave open, over a workload."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.app.cli import console
from discreet.app.cli.allowing import AllowOption, PasswordOption, password_in


def add(app: typer.Typer) -> None:
    """Register the command in the group `gateway`."""
    # The file's name sorts behind that of the group, so the group is there already.
    group = next((g.typer_instance for g in app.registered_groups if g.name == "gateway"), None)
    if group is None:
        group = typer.Typer(no_args_is_help=True, help="Ask under a guard.")
        app.add_typer(group, name="gateway")
    group.command("evaluate")(_evaluate)


def _evaluate(
    policy: Annotated[Path, typer.Argument(help="The policy file with `gateways:`.")],
    guard: Annotated[
        list[str] | None,
        typer.Option(
            help="Another guard to compare, as a policy writes it: 'restriction: {k: 3}'."
        ),
    ] = None,
    recorded: Annotated[
        Path | None, typer.Option(help="An exported ledger whose questions are asked again.")
    ] = None,
    questions: Annotated[
        int, typer.Option(min=1, help="How many questions to generate without one.")
    ] = 200,
    allow: AllowOption = None,
    password_from: PasswordOption = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with a picture there.")] = None,
    as_json: console.JsonOption = False,
) -> None:
    """Compare guards over the same questions: refusals, widths, noise against theory, time, risk.

    Every guard starts from an empty ledger in memory; nothing is charged. For the curator.
    """
    from discreet.app.policy.access import permitted_policy
    from discreet.app.policy.guards import read_guard
    from discreet.app.policy.run import open_source
    from discreet.data.atomic import atomic_file
    from discreet.queries import evaluation
    from discreet.randomness import Randomness

    loaded, _ = permitted_policy(policy, allow=allow or (), password=password_in(password_from))
    dataset = open_source(loaded)
    guards = {name: getattr(job, "guard", None) for name, job in loaded.gateways.items()}
    guards |= {text: read_guard(text) for text in guard or []}
    asked = (
        evaluation.generated(dataset, questions, rng=Randomness.seeded(1))
        if recorded is None
        else evaluation.recorded(recorded)
    )
    with console.progress() as progress:
        found = evaluation.evaluate(
            dataset, {n: g for n, g in guards.items() if g is not None}, asked, progress=progress
        )
    if html is not None:
        with atomic_file(html) as file:
            file.write_text(found.page().html(), encoding="utf-8")
    console.show(found, as_json=as_json)
