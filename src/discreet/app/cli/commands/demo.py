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
    ) -> None:
        """Protect, release, ask and attack an embedded population; writes an HTML report."""
        from discreet.app.demo.run import run_demo

        with console.progress() as progress:
            report = run_demo(output, rows=rows, voice=print, progress=progress)
        print(f"\nThe report is in {report}. Open it in a browser.")
        print("Next: `discreet describe FILE` on your own data, `discreet --help` for the rest.")
