"""Options of every command that reads a policy: what a policy may touch besides its own folder."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from discreet.errors import InputError

__all__ = ["AllowOption", "PasswordOption", "password_in"]

AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH|ADDRESS",
        help="A file or folder outside the policy's own, or a database (postgresql://host/name), "
        "that the policy may use; repeatable.",
    ),
]
PasswordOption = Annotated[
    str | None,
    typer.Option(
        metavar="VARIABLE",
        help="Environment variable with the password of the databases allowed; no other is used.",
    ),
]


def password_in(variable: str | None) -> str | None:
    """Return the password in the environment variable that the caller named."""
    if variable is None:
        return None
    if variable not in os.environ:
        raise InputError(
            f"there is no environment variable {variable!r}",
            code="no-password",
            hint="set it, or leave --password-from out",
        )
    return os.environ[variable]
