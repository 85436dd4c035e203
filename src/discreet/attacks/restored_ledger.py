"""The restored ledger."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Sequence
from typing import ClassVar

from discreet.attacks._custodian import Asking, HistoryAttack

__all__ = ["RestoredLedger"]


@dataclasses.dataclass(frozen=True)
class RestoredLedger(HistoryAttack):
    """Ask one half of a difference, have an older copy of the ledger restored, ask the other.

    Examples
    --------
    >>> RestoredLedger().control().succeeded
    True
    """

    name: ClassVar[str] = "restored-ledger"
    reference: ClassVar[str] = "Denning (1982), Cryptography and Data Security, chapter 6"

    def ask_twice(self, asking: Asking) -> Sequence[tuple[float, float] | None]:
        """Bring the ledger back to where it was before the first question."""
        asking.site.write(asking.rows)
        asking.visit()
        copies = asking.site.folder / "copies"
        copies.mkdir()
        for file in asking.site.folder.glob("ledger.db*"):
            shutil.copyfile(file, copies / file.name)
        more = asking.total(without=False)
        for file in asking.site.folder.glob("ledger.db*"):
            file.unlink()
        for file in copies.iterdir():
            shutil.copyfile(file, asking.site.folder / file.name)
        return more, asking.total(without=True)
