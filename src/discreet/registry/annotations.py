"""Types as annotations say them: whether a value is of one, and how it is called in words."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

__all__ = [
    "describe_type",
    "fits",
    "fits_inside",
    "is_optional",
    "options",
]


def options(kind: Any) -> tuple[Any, ...]:
    """Return the alternatives of a union; of any other type, the type alone. Any: a type."""
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def is_optional(kind: Any) -> bool:
    """Whether nothing is a value of the type. Any: a type."""
    return type(None) in options(kind)


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of an annotated type, as far as a parameter needs."""
    if kind is Any:
        return True
    if len(options(kind)) > 1:
        return any(fits(value, option) for option in options(kind))
    origin = get_origin(kind)
    if origin is Literal:
        return value in get_args(kind)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is None or kind is type(None):
        return value is None
    if origin is tuple:
        inner = get_args(kind)
        if not isinstance(value, tuple):
            return False
        if len(inner) == 2 and inner[1] is Ellipsis:
            return all(fits(item, inner[0]) for item in value)
        return len(value) == len(inner) and all(map(fits, value, inner))
    if origin is Callable or origin is getattr(types, "FunctionType", None):
        return callable(value)
    checked = origin or kind
    return not isinstance(checked, type) or isinstance(value, checked)


def fits_inside(value: Any, kind: Any) -> bool:
    """Whether the values of a mapping are of the type that an annotation says. Any: as above."""
    inner = [get_args(one)[1] for one in options(kind) if get_origin(one) in (dict, Mapping)]
    if not isinstance(value, Mapping) or not inner:
        return True
    return all(any(fits(one, option) for option in inner) for one in value.values())


def describe_type(kind: Any) -> str:
    """Return an annotated type in words.

    >>> describe_type(int | None), describe_type(tuple[str, ...])
    ('a whole number or nothing', 'a list of text')
    """
    names = {
        int: "a whole number",
        float: "a number",
        str: "text",
        bool: "true or false",
        type(None): "nothing",
    }
    if len(options(kind)) > 1:
        return " or ".join(describe_type(option) for option in options(kind))
    if kind in names:
        return names[kind]
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if get_origin(kind) in (tuple, list, Sequence):
        return f"a list of {describe_type(get_args(kind)[0])}"
    if get_origin(kind) in (dict, Mapping):
        return "a mapping"
    return str(getattr(kind, "family_name", getattr(kind, "__name__", kind)))
