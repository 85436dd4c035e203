"""The command `discreet`: jobs found in their folders, other commands in the folder `commands`."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from discreet import __version__
from discreet.app.cli import commands, console
from discreet.app.cli.glance import Glance, glances, group_help
from discreet.app.cli.groups import Group, add_group, markup, unmarked
from discreet.errors import DiscreetError, InputError

__all__ = ["build", "main"]

_HELP = """Publish statistics, not people.

Release [bold]tables[/bold], [bold]microdata[/bold] or [bold]answers to queries[/bold], each with a
stated protection, a measured risk, a measured loss and an attack to try against it.

Start with [bold]discreet demo[/bold], then [bold]discreet describe FILE[/bold] on your own data.
"""


def build(words: Sequence[str] | None = None) -> typer.Typer:
    """Return the application with every command, or with what given words need.

    Help of a group needs no more of a job than its file says; a command needs its own job alone.
    """
    app = typer.Typer(
        name="discreet",
        cls=Group,
        help=_HELP if markup() else unmarked(_HELP),
        rich_markup_mode=markup(),
        no_args_is_help=True,
        # Tracebacks with local variables would print records.
        pretty_exceptions_enable=False,
        # `discreet man` describes all commands, also those that these words do not need.
        context_settings={"help_option_names": ["-h", "--help"], "obj": build},
    )

    @app.callback()
    def root(
        version: Annotated[
            bool,
            typer.Option("--version", help="Print the version.", is_eager=True, callback=_version),
        ] = False,
    ) -> None:
        """Hold the options that come before a command."""

    jobs = glances()
    typed = [word for word in words or () if not word.startswith("-")]
    known = [job for job in jobs if typed and typed[0] == (job.group or job.name)]
    wanted = known or jobs
    is_help = words is not None and not typed[1 if known and known[0].group else 0 :]
    _add_jobs(app, wanted, is_stub=is_help or bool(words and not known))
    for name in sorted(item.name for item in pkgutil.iter_modules(commands.__path__)):
        if not known or name.partition("_")[0] == typed[0]:
            module = importlib.import_module(f"{commands.__name__}.{name}")
            is_other = words is not None and typed[:1] != [name]
            (getattr(module, "add_stub", module.add) if is_other else module.add)(app)
    return app


def _add_jobs(app: typer.Typer, jobs: Sequence[Glance], *, is_stub: bool) -> None:
    groups: dict[str, list[Glance]] = {}
    for job in jobs:
        groups.setdefault(job.group, []).append(job)
    for name, members in groups.items():
        default = next((job.name for job in members if job.is_default), "")
        place = add_group(app, name, group_help(members), default) if name else app
        for job in members:
            place.command(job.name, help=job.help)(_stub if is_stub else _command(job))


def _command(job: Glance) -> Callable[..., None]:
    from discreet.app.cli.from_job import command

    return command(job)


def _stub() -> None:
    """Stand for a command where only its name and its help are shown."""


def _version(asked: bool) -> None:
    if asked:
        print(f"discreet {__version__}")
        raise typer.Exit


def _stop(*_: object) -> None:
    sys.exit(128 + signal.SIGTERM)


def main() -> None:
    """Run the command line; every error becomes one readable block and an exit code."""
    as_json = "--json" in sys.argv
    # Told to stop, a command cleans up behind itself as after an error.
    signal.signal(signal.SIGTERM, _stop)
    try:
        # A shell that asks for completions does not say what was typed in the usual place.
        app = build(None if "_DISCREET_COMPLETE" in os.environ else sys.argv[1:])
        # On its own typer draws mistakes in typing for people; programs are given them as errors.
        sys.exit(app(standalone_mode=False) if as_json else app())
    except DiscreetError as error:
        sys.exit(console.fail(error, as_json=as_json))
    except typer.Abort:
        sys.exit(1)
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
        if as_json and hasattr(error, "format_message"):
            said = InputError(error.format_message(), code="usage", hint="see --help")
            sys.exit(console.fail(said, as_json=True))
        place = traceback.extract_tb(error.__traceback__)[-1]
        file = place.filename.rsplit("/", 1)[-1]
        where = f"{type(error).__name__} in {place.name} ({file}:{place.lineno})"
        do = "run again with DISCREET_DEBUG=1 to see all of it, and report it without your data"
        if as_json:
            told = {"error": "internal", "message": f"internal error: {where}", "hint": do}
            console.note(json.dumps(told, indent=2))
        else:
            console.note(f"internal error: {where}\n  do:    {do}")
        sys.exit(1)
