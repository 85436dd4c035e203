"""Writes the reference from the program itself, so that it cannot fall behind."""

import ast
import inspect
import shutil
from pathlib import Path

import click
import typer.main

import discreet
from discreet.app.cli.main import build
from discreet.data.declared import HierarchySource
from discreet.data.source import Source
from discreet.registry import Declaration, describe_type, families, members

SOURCE = Path(__file__).parent.parent / "src" / "discreet"


def write(folder: Path) -> None:
    """Write one page per family, one of the commands and one of the error codes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for family in families():
        (folder / f"family-{family}.md").write_text(_family(family), encoding="utf-8")
    (folder / "data.md").write_text(_data(), encoding="utf-8")
    (folder / "python.md").write_text(_python(), encoding="utf-8")
    (folder / "commands.md").write_text(_commands(), encoding="utf-8")
    (folder / "errors.md").write_text(_errors(), encoding="utf-8")


def _family(family: str) -> str:
    lines = [f"# {family}", ""]
    for name, cls in members(family).items():
        lines += [f"## {name}", "", f"`dc.{cls.__name__}`: {cls.summary()}", ""]
        if cls.reference:
            lines += [f"*{cls.reference}*", ""]
        if getattr(cls, "command", ""):
            lines += [f"Command: `discreet {cls.command}`; in a policy under `{cls.section}:`.", ""]
        lines += _parameters(cls)
        rest = inspect.getdoc(cls) or ""
        lines += _text(rest.partition("\n")[2])
    return "\n".join(lines)


def _data() -> str:
    """Return how records are declared: the section `data` of a policy, the options of commands."""
    lines = ["# data", "", f"`dc.Source`: {Source.summary()}", "", *_parameters(Source)]
    lines += ["## hierarchies", "", HierarchySource.summary(), "", *_parameters(HierarchySource)]
    return "\n".join(lines)


def _parameters(cls: type[Declaration]) -> list[str]:
    """Return the parameters as a table, in the words of their declarations."""
    if not cls.parameters():
        return []
    lines = ["| parameter | type | default | meaning |", "|---|---|---|---|"]
    for item in cls.parameters():
        default = "required" if item.required else f"`{item.default}`"
        meaning = f"{item.help} ({item.range})" if item.range else item.help
        cells = (f"`{item.name}`", describe_type(item.type), default, meaning)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*lines, ""]


def _text(text: str) -> list[str]:
    """Return a docstring as it is written, examples included."""
    text = text.strip("\n")
    return ["````text", text, "````", ""] if text.strip() else []


def _python() -> str:
    """Return every public name with its call and its docstring; members have their own pages."""
    lines = ["# Python", "", "Everything that `import discreet as dc` offers, by name.", ""]
    classes = {cls.__name__ for family in families() for cls in members(family).values()}
    for name in public_names():
        if name in classes:
            continue
        thing = getattr(discreet, name)
        lines += [f"## dc.{name}", ""]
        lines += ["```text", f"dc.{name}{_signature(thing)}", "```", ""]
        lines += _text(inspect.getdoc(thing) or "")
        for method, value in inspect.getmembers(thing) if inspect.isclass(thing) else ():
            own = next((b for b in thing.__mro__ if method in vars(b)), None)
            if method.startswith("_") or own is None or not own.__module__.startswith("discreet"):
                continue
            if callable(value) and inspect.getdoc(value):
                lines += [f"### {name}.{method}", ""]
                lines += ["```text", f"{method}{_signature(value)}", "```", ""]
                lines += _text(inspect.getdoc(value) or "")
    if classes:
        lines += ["## Members of families", ""]
        lines += ["One class each; their pages say what they do.", ""]
        lines += [", ".join(f"`dc.{name}`" for name in sorted(classes)), ""]
    return "\n".join(lines)


def public_names() -> list[str]:
    """Return what `dir(discreet)` shows."""
    return [name for name in dir(discreet) if not name.startswith("_")]


def _signature(thing: object) -> str:
    if not callable(thing):
        return ""
    try:
        return str(inspect.signature(thing)).replace("'", "")
    except ValueError:
        return "(…)"


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
