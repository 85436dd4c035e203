"""The libraries that differential privacy rests on, imported where they are first needed.

They belong to the extra `dp`: who publishes tables or anonymised records does without them.
"""

from __future__ import annotations

import functools
from typing import Any

from discreet.errors import missing_extra

__all__ = ["accounting", "opendp"]

_WHAT = "differential privacy"


@functools.cache
def opendp() -> Any:
    """Return OpenDP with the features switched on that have been proven and reviewed.

    Any: OpenDP has no annotations that fit its generated functions.
    """
    try:
        import opendp.prelude as dp
    except ModuleNotFoundError:
        raise missing_extra(_WHAT, "dp") from None
    dp.enable_features("contrib")
    return dp


@functools.cache
def accounting() -> Any:
    """Return dp-accounting with its accountants. Any: it has no annotations."""
    try:
        import dp_accounting
        import dp_accounting.pld.privacy_loss_distribution
        import dp_accounting.rdp
    except ModuleNotFoundError:
        raise missing_extra(_WHAT, "dp") from None
    return dp_accounting
