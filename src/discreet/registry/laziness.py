"""Packages that import their parts when they are first used."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

__all__ = [
    "lazy",
]


def lazy(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], list[str]]:
    """Return `__getattr__` and `__all__` for a package that imports its parts when first used.

    `names` maps a public name to the module that holds it. Importing `discreet` must stay cheap:
    the command line shows its help without loading a solver.
    """

    def get(name: str) -> Any:
        if name in names:
            return getattr(importlib.import_module(names[name]), name)
        try:  # a module of the package itself
            if not name.startswith("_") and name in _submodules(package):
                return importlib.import_module(f"{package}.{name}")
        except ModuleNotFoundError:
            pass
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    class Package(types.ModuleType):
        """A package in which a public name stays what it is when a module is called the same.

        Importing `discreet.data.describe` would put the module in the place of the function.
        """

        def __setattr__(self, name: str, value: Any) -> None:
            same = isinstance(value, types.ModuleType) and value.__name__ == names.get(name)
            super().__setattr__(name, getattr(value, name, value) if same else value)

    sys.modules[package].__class__ = Package
    return get, sorted(names)


def _submodules(package: str) -> set[str]:
    return {m.name for m in pkgutil.iter_modules(importlib.import_module(package).__path__)}
