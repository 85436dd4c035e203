"""Functions compiled by numba on their first call and kept on disk between runs.

numba forgets what it keeps when the file of a function changes. A function is compiled together
with those it calls, which may be in other files: a change there would go unnoticed. So what is
kept here belongs to the sources of the whole folder, and compiled functions use compiled functions
and constants of their own folder only.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import caching

__all__ = ["Array", "FolderLocator", "inner", "kernel"]

# Any: numba infers the types; arrays are float64 and int64 throughout.
Array = Any
Function = TypeVar("Function", bound=Callable[..., Any])


@functools.cache
def _digest(folder: Path) -> str:
    """Return a digest of the sources in a folder."""
    digest = hashlib.sha256()
    for source in (*sorted(folder.glob("*.py")), Path(__file__)):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()


class FolderLocator:
    """Where a compiled function is kept, and for which sources.

    numba takes such classes by name (`NUMBA_CACHE_LOCATOR_CLASSES`). The place is the one that
    numba would choose; only the stamp differs.
    """

    def __init__(self, place: Any, source: str) -> None:  # Any: one of numba's locators
        self._place = place
        self._py_file = source  # numba names it in its warnings
        self.ensure_cache_path = place.ensure_cache_path
        self.get_cache_path = place.get_cache_path

    def get_disambiguator(self) -> str:
        """Return what tells its files from those of other functions, and of other sources.

        What was kept for other sources may name types that are no more, and cannot be read.
        """
        return f"{self._place.get_disambiguator()}-{self.get_source_stamp()[:12]}"

    def get_source_stamp(self) -> str:
        """Return what must be unchanged for the compiled function to be used again."""
        return _digest(Path(self._py_file).resolve().parent)

    @classmethod
    def from_function(cls, function: Callable[..., Any], source: str) -> FolderLocator | None:
        """Return the locator of a function, or None where nothing can be kept."""
        for locator in (
            caching.UserProvidedCacheLocator,
            caching.InTreeCacheLocator,
            caching.UserWideCacheLocator,
        ):
            place = locator.from_function(function, source)
            if place is not None:
                return cls(place, source)
        return None


@contextmanager
def _located_by_folder() -> Iterator[None]:
    """Have numba ask `FolderLocator`, for the functions decorated meanwhile and no others."""
    before = numba.config.CACHE_LOCATOR_CLASSES
    numba.config.CACHE_LOCATOR_CLASSES = f"{__name__}.{FolderLocator.__name__}"
    try:
        yield
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = before


def kernel(function: Function) -> Function:
    """Compile a function that the interpreter calls; threads run it side by side.

    Examples
    --------
    >>> @kernel
    ... def twice(n):
    ...     return 2 * n
    >>> twice(21)
    42
    """
    return _compiled(function, nogil=True)


def inner(function: Function) -> Function:
    """Compile a function that only compiled ones call.

    It gets no entry for the interpreter, which would take as long to compile as a short function.
    """
    return _compiled(function, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _compiled(function: Function, **options: bool) -> Function:
    # What was typed at a prompt has no source that could be compared.
    keep = Path(function.__code__.co_filename).exists()
    with _located_by_folder():
        return cast("Function", numba.njit(cache=keep, **options)(function))
