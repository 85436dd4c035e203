"""The table against answers."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from discreet.attacks._publications import Printed, SumsAttack

__all__ = ["TableAgainstAnswers"]


@dataclasses.dataclass(frozen=True)
class TableAgainstAnswers(SumsAttack):
    """Subtract what a gateway answered from a printed margin.

    Examples
    --------
    >>> TableAgainstAnswers().control().succeeded
    True
    """

    name: ClassVar[str] = "table-against-answers"
    reference: ClassVar[str] = "Denning (1982), Cryptography and Data Security, chapter 6"

    def example(self) -> tuple[list[Printed], Any, float]:
        """Return a margin of the fifteen people, and an answer about all of it but one."""
        from discreet.attacks._raw import RawDatabase
        from discreet.demo.datasets import salaries

        people = salaries()
        rows = [row for row in people.arrow().to_pylist() if row["sector"] == "Fin"]
        margin = Printed(frozenset(row["id"] for row in rows), sum(row["salary"] for row in rows))
        asked = "SELECT SUM(salary) AS s FROM people WHERE sector = 'Fin' AND region = 'BCN'"
        told = RawDatabase(people).ask(asked, user="eve").table.column(0).to_pylist()[0]
        inside = frozenset(row["id"] for row in rows if row["region"] == "BCN")
        victim = next(row for row in rows if row["region"] == "TGN")
        return [margin, Printed(inside, float(told))], victim["id"], float(victim["salary"])
