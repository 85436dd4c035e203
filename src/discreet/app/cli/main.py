"""The command `discreet`: finds its commands by looking into the folder `commands`."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import traceback
from typing import Annotated

import typer

from discreet import __version__
from discreet.app.cli import commands, console
from discreet.errors import DiscreetError

__all__ = ["build", "main"]

_HELP = """Publish statistics, not people.

Release [bold]tables[/bold], [bold]microdata[/bold] or [bold]answers to queries[/bold], each with a
stated protection, a measured risk, a measured loss and an attack to try against it.

Start with [bold]discreet demo[/bold], then [bold]discreet describe FILE[/bold] on your own data.
"""


def build() -> typer.Typer:
    """Return the application with every command it finds."""
    app = typer.Typer(
        name="discreet",
        help=_HELP,
        rich_markup_mode="rich",
        no_args_is_help=True,
        # Tracebacks with local variables would print records.
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(
        version: Annotated[
            bool,
            typer.Option("--version", help="Print the version.", is_eager=True, callback=_version),
        ] = False,
    ) -> None:
        """Hold the options that come before a command."""

    for item in sorted(pkgutil.iter_modules(commands.__path__), key=lambda item: item.name):
        importlib.import_module(f"{commands.__name__}.{item.name}").add(app)
    return app


def _version(asked: bool) -> None:
    if asked:
        print(f"discreet {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; every error becomes one readable block and an exit code."""
    as_json = "--json" in sys.argv
    try:
        build()()
    except DiscreetError as error:
        sys.exit(console.fail(error, as_json=as_json))
    except BrokenPipeError:
        # The reader went away (`discreet … | head`); nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        # A message of an unknown error may quote a record, so only its kind and place are shown.
        if os.environ.get("DISCREET_DEBUG"):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        console.note(
            f"internal error: {type(error).__name__} in {place.name} ({place.filename.rsplit('/', 1)[-1]}:"
            f"{place.lineno})\n  do:    run again with DISCREET_DEBUG=1 to see all of it, "
            "and report it without your data"
        )
        sys.exit(1)
