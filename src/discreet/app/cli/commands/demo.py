"""`discreet demo`: everything discreet does, on embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.app.cli import console


def add(app: typer.Typer) -> None:
    """Register the command."""

    @app.command()
    def demo(
        output: Annotated[
            Path, typer.Option("--output", "-o", help="Folder of the report and the releases.")
        ] = Path("out/demo"),
        rows: Annotated[int, typer.Option(min=100, help="Persons in the population.")] = 10_000,
        as_json: console.JsonOption = False,
    ) -> None:
        """Protect, release, ask and attack an embedded population; writes an HTML report."""
        from discreet.app.demo.run import run_demo

        def quiet(_: str = "") -> None:
            """Say nothing: a program reads the report's place alone."""

        with console.progress() as progress:
            voice = quiet if as_json else print
            report = run_demo(output, rows=rows, voice=voice, progress=progress)
        if as_json:
            console.done("", as_json=True, report=report, folder=output)
            return
        print(f"\nThe report is in {report}. Open it in a browser.")
        print("Next: `discreet describe FILE` on your own data, `discreet --help` for the rest.")
