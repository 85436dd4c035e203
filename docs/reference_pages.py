"""Writes the reference from the program itself, so that it cannot fall behind."""

import ast
import shutil
from pathlib import Path

import click
import typer.main

from discreet.app.catalogue import member_page
from discreet.app.cli.main import build
from discreet.registry import families, members

SOURCE = Path(__file__).parent.parent / "src" / "discreet"


def write(folder: Path) -> None:
    """Write one page per family, one of the commands and one of the error codes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for family in families():
        (folder / f"family-{family}.md").write_text(_family(family), encoding="utf-8")
    (folder / "commands.md").write_text(_commands(), encoding="utf-8")
    (folder / "errors.md").write_text(_errors(), encoding="utf-8")


def _family(family: str) -> str:
    lines = [f"# {family}", ""]
    for name, cls in members(family).items():
        lines += [f"## {name}", "", f"`dc.{cls.__name__}`: {cls.summary()}", ""]
        if cls.reference:
            lines += [f"*{cls.reference}*", ""]
        lines += ["```text", str(member_page(name)), "```", ""]
    return "\n".join(lines)


def _commands() -> str:
    lines = ["# Commands", ""]
    root = typer.main.get_command(build())

    def walk(command: click.Command, path: str, depth: int) -> None:
        lines.extend(
            [f"{'#' * min(depth, 4)} {path}", "", "```text", _usage(command, path), "```", ""]
        )
        for name in sorted(getattr(command, "commands", {})):
            walk(command.commands[name], f"{path} {name}", depth + 1)

    walk(root, "discreet", 2)
    return "\n".join(lines)


def _usage(command: click.Command, path: str) -> str:
    context = (
        typer.Context(command, info_name=path)
        if hasattr(typer, "Context")
        else click.Context(command, info_name=path)
    )
    lines = [command.get_usage(context), ""]
    lines += [
        line.strip()
        for line in (command.help or "").replace("[bold]", "").replace("[/bold]", "").splitlines()
    ]
    lines.append("")
    for item in command.params:
        record = item.get_help_record(context)
        if record is not None:
            lines.append(f"  {record[0]}  {record[1]}")
    return "\n".join(lines).rstrip()


def _errors() -> str:
    """Collect every stable code from the source: code, branch, and where it is raised."""
    found: dict[str, set[tuple[str, str]]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            for keyword in node.keywords:
                if (
                    keyword.arg == "code"
                    and isinstance(keyword.value, ast.Constant)
                    and node.func.id.endswith("Error")
                ):
                    place = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
                    found.setdefault(str(keyword.value.value), set()).add((node.func.id, place))
    lines = ["# Error codes", "", "| code | branch | raised in |", "|---|---|---|"]
    for code, places in sorted(found.items()):
        branches = ", ".join(sorted({branch for branch, _ in places}))
        lines.append(f"| `{code}` | {branches} | {', '.join(sorted({p for _, p in places}))} |")
    return "\n".join(lines) + "\n"
