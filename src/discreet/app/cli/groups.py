"""Groups of commands, made by whoever adds to them first."""

from __future__ import annotations

import sys
from typing import Any, Literal

import typer
from typer.core import TyperGroup

__all__ = ["Group", "add_group", "markup", "unmarked"]


def markup() -> Literal["rich"] | None:
    """Return how help is drawn: in boxes on a terminal, as plain text where it is read or stored.

    Importing what draws boxes takes as long as everything else that help needs.
    """
    return "rich" if sys.stdout.isatty() else None


def unmarked(text: str | None) -> str:
    """Return help without the marks of what is drawn bold."""
    return (text or "").replace("[bold]", "").replace("[/bold]", "").replace(r"\[", "[")


class Group(TyperGroup):
    """A group whose commands show their help as it is drawn."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command. Any: typer's contexts and commands are no public names."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and self.rich_markup_mode is None:
            command.help = unmarked(command.help)
            for item in command.params:
                if getattr(item, "help", None):
                    item.help = unmarked(item.help)  # type: ignore[attr-defined]  # options have it
        return command


def add_group(app: typer.Typer, name: str, help: str = "", default: str = "") -> typer.Typer:
    """Return the group of a name; `default` is the command that a bare file is for."""
    for made in app.registered_groups:
        if made.name == name and made.typer_instance is not None:
            return made.typer_instance

    class DefaultGroup(Group):
        """Takes what is not a command for the default one's file: `discreet table people.csv`."""

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            # Any: typer's context is not a public name.
            if default and args and not args[0].startswith("-") and args[0] not in self.commands:
                args = [default, *args]
            return super().parse_args(ctx, args)

    group = typer.Typer(cls=DefaultGroup, no_args_is_help=True, help=help)
    app.add_typer(group, name=name)
    return group
