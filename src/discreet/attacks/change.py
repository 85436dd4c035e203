"""The change attack."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from discreet.attacks._custodian import Asking, HistoryAttack

__all__ = ["Change"]


@dataclasses.dataclass(frozen=True)
class Change(HistoryAttack):
    """Ask the same question before and after the victim's record came, and subtract.

    Examples
    --------
    >>> Change().control().succeeded
    True
    """

    name: ClassVar[str] = "change"
    reference: ClassVar[str] = (
        "Denning, Denning and Schwartz (1979), The tracker: a threat to statistical database security"
    )

    def ask_twice(self, asking: Asking) -> Sequence[tuple[float, float] | None]:
        """Have the last row added between two questions."""
        asking.site.write(asking.rows[:-1])
        less = asking.total(without=False)
        asking.site.write(asking.rows)
        return asking.total(without=False), less
