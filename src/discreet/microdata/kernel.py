"""Functions compiled by numba when first called, and kept compiled between runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

__all__ = ["Array", "kernel"]

# Any: numba finds the types itself; arrays are float64 and int64 throughout.
Array = Any

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function on its first call, into the cache beside its file; threads may share it."""
    compiled: Function = njit(cache=True, nogil=True)(function)
    return compiled
