"""The manual page of `discreet`, written from the declarations of its commands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

from discreet import __version__
from discreet.app.cli.groups import unmarked

__all__ = ["declared", "man_page"]


def declared(command: Any, path: str = "discreet") -> list[dict[str, Any]]:
    """Return every command below one, with its options, as data; groups first, then their commands.

    Any: the classes of commands are no public names of typer.
    """
    found = [
        {
            "command": path,
            "help": _plain(command.help),
            "parameters": [*_parameters(command, path)],
        }
    ]
    for name in sorted(getattr(command, "commands", {})):
        found += declared(command.commands[name], f"{path} {name}")
    return found


def man_page(command: Any) -> str:
    """Return the page in the language of `man` (roff), for all commands below one."""
    root, *others = declared(command)
    summary, _, rest = root["help"].partition("\n")
    lines = [
        f'.TH DISCREET 1 "" "discreet {__version__}" "User Commands"',
        ".SH NAME",
        f"discreet \\- {_escaped(summary.strip().rstrip('.').lower())}",
        ".SH SYNOPSIS",
        ".B discreet",
        ".I COMMAND",
        "[\\fIOPTION\\fR ...]",
        ".SH DESCRIPTION",
        *_paragraphs(rest),
        ".SH OPTIONS",
        *_options(root["parameters"]),
        ".SH COMMANDS",
    ]
    for one in others:
        arguments = " ".join(item["names"][0] for item in one["parameters"] if item["is_argument"])
        lines += [f".SS {_escaped(one['command'])} {_escaped(arguments)}".rstrip()]
        lines += [*_paragraphs(one["help"]), *_options(one["parameters"])]
    lines += [
        ".SH EXIT STATUS",
        *_labelled("0", "It was done, and nothing was found against it."),
        *_labelled("1", "A check failed, or something unforeseen happened."),
        *_labelled("2", "It cannot be done as asked: correct the command, the file or the policy."),
        *_labelled("3", "Refused, to protect those whom records are about."),
        *_labelled("4", "No safe result exists under these demands."),
        *_labelled("5", "A database or another engine failed."),
    ]
    return "\n".join(lines) + "\n"


def _parameters(command: Any, path: str) -> Iterator[dict[str, Any]]:
    context = typer.Context(command, info_name=path)
    for item in command.params:
        record = item.get_help_record(context)
        if record is None:
            continue
        usage, text = record
        is_argument = item.param_type_name == "argument"
        named = usage.split()[0] if usage.strip() else item.name
        names = [named] if is_argument else [*item.opts, *item.secondary_opts]
        yield {
            "names": names,
            "is_argument": is_argument,
            "usage": named if is_argument else " ".join(usage.split()),
            "required": bool(item.required),
            "several": bool(item.multiple) or item.nargs != 1,
            "help": _plain(text),
        }


def _plain(text: str | None) -> str:
    return inspect.cleandoc(unmarked(text)).strip()


def _options(parameters: list[dict[str, Any]]) -> Iterator[str]:
    for item in parameters:
        yield from _labelled(item["usage"], item["help"])


def _labelled(label: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield f".B {_escaped(label)}"
    yield _escaped(" ".join(text.split()))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in filter(None, map(str.strip, re.split(r"\n\s*\n", text))):
        yield ".PP"
        yield _escaped(" ".join(paragraph.split()))


def _escaped(text: str) -> str:
    r"""Return text that roff shows as it stands: no line of it is taken for a request.

    >>> _escaped(".so other\\file -o")
    '\\&.so other\\efile \\-o'
    """
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = "".join(one if one.isascii() else f"\\[u{ord(one):04X}]" for one in text)
    return f"\\&{text}" if text[:1] in (".", "'") else text
