"""`discreet collect`: randomise answers before they leave, and estimate from the reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.app.cli import console

if TYPE_CHECKING:
    from discreet.dp.local import LocalMechanism

MechanismOption = Annotated[
    str,
    typer.Option(
        "--mechanism",
        "-m",
        help="Name, and parameters as name=value: 'randomized-response gamma=0.25'.",
    ),
]


def add(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(
        help="Randomised response and local differential privacy.", no_args_is_help=True
    )
    app.add_typer(group, name="collect")

    @group.command()
    def simulate(
        mechanism: MechanismOption,
        respondents: Annotated[int, typer.Option(min=1, help="How many answer.")] = 10_000,
        share: Annotated[
            float, typer.Option(min=0, max=1, help="True share of yes, or of the first answer.")
        ] = 0.3,
        rounds: Annotated[int, typer.Option(min=2, help="Repetitions.")] = 50,
        as_json: console.JsonOption = False,
    ) -> None:
        """Measure a mechanism's error over repeated collections, beside the theory."""
        from discreet.app.collect import simulate as run

        with console.progress() as progress:
            report = run(_mechanism(mechanism), respondents, share, rounds, progress=progress)
        console.show(report, as_json=as_json)

    @group.command()
    def encode(
        answers: Annotated[Path, typer.Argument(help="One answer per line.")],
        mechanism: MechanismOption,
        output: Annotated[Path, typer.Option("--output", "-o", help="Randomised reports (CSV).")],
        as_json: console.JsonOption = False,
    ) -> None:
        """Randomise a file of answers; the reports may leave, the answers need not."""
        from discreet.app.collect import encode_file

        count = encode_file(_mechanism(mechanism), answers, output)
        console.done(
            f"wrote {count:,} reports to {output}", as_json=as_json, written=output, reports=count
        )

    @group.command()
    def estimate(
        reports: Annotated[Path, typer.Argument(help="Reports as `collect encode` writes them.")],
        mechanism: MechanismOption,
        as_json: console.JsonOption = False,
    ) -> None:
        """Estimate shares or the mean from reports, with 95 % intervals."""
        from discreet.app.collect import estimate_file

        console.show(estimate_file(_mechanism(mechanism), reports), as_json=as_json)


def _mechanism(text: str) -> LocalMechanism:
    from discreet.app.cli.members import parse_member
    from discreet.dp.local import LocalMechanism

    mechanism: LocalMechanism = parse_member(LocalMechanism, text)
    if mechanism.caution:
        console.note(f"caution: {mechanism.caution}")
    return mechanism
