"""Publish statistics, not people: tables, microdata and query answers with proven protection.

Examples
--------
>>> import discreet as dc
>>> dc.__version__ == "0.1.0"
True
"""

from __future__ import annotations

import importlib
from typing import Any

from discreet.errors import DiscreetError as DiscreetError
from discreet.errors import EngineError as EngineError
from discreet.errors import InfeasibleError as InfeasibleError
from discreet.errors import InputError as InputError
from discreet.errors import RefusedError as RefusedError

__version__ = "0.1.0"

# Each package says what it exports; nothing here is edited when a capability is added. Everything
# else is imported when first asked for, so that `import discreet` stays cheap.
_PACKAGES = (
    "data",
    "verification",
    "audit",
    "dp",
    "ledger",
    "tables",
    "microdata",
    "queries",
    "attacks",
    "protocols",
)
_KERNEL = {"Randomness": "discreet.randomness", "Report": "discreet.report"}


_ERRORS = (DiscreetError, EngineError, InfeasibleError, InputError, RefusedError)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    if name in _KERNEL:
        return getattr(importlib.import_module(_KERNEL[name]), name)
    for package in _PACKAGES:
        try:
            module = importlib.import_module(f"discreet.{package}")
        except ModuleNotFoundError as error:
            if error.name != f"discreet.{package}":
                raise
            continue
        if name in module.__all__:
            return getattr(module, name)
    if name[0].isupper():
        from discreet.registry import find_class

        if (found := find_class(name)) is not None:
            return found
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    from discreet.registry import families

    names = {"__version__", *_KERNEL}
    # Of what stands here, the errors are public; what is only used here is not.
    names |= {error.__name__ for error in _ERRORS}
    for package in _PACKAGES:
        names.update(getattr(importlib.import_module(f"discreet.{package}"), "__all__", ()))
    for folders in families().values():
        for folder in folders:
            names.update(member.__name__ for member in folder.members().values())
    return sorted(names)
