"""What a joint question returns: the table, what was opened, and what each party learned."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.protocols.arithmetic.fixed_point import decode
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.joint.demand import Demand
from discreet.protocols.joint.learned import Leakage
from discreet.report import Report, Rows

if TYPE_CHECKING:
    import pandas

__all__ = ["JointTable", "Leakage", "leakage"]


def leakage(policy: JointPolicy) -> Leakage:
    """Return the statement of what parties learn from a joint table."""
    opened = "which cells are withheld; of the others counts and sums over all owners"
    coalition = (
        "one owner" if policy.collusion == 1 else f"up to {policy.collusion} owners together"
    )
    return Leakage(
        ("analyst", "node", "owner that is no node", "anybody on the network"),
        (
            opened,
            opened + "; uniformly random words for everything else",
            "the question",
            "sizes and times of messages",
        ),
        (
            "what the opened cells say",
            f"with the parts of {coalition} subtracted, remainders that meet the rules as well",
            "nothing of the others, but with totals which cells are withheld",
            "the question's size and how many cells are safe",
        ),
        (
            "parties follow the protocol; of the three nodes no two put their shares together",
            "no contributor has records at two owners",
            "a withheld cell says that some rule finds the total or a remainder sensitive",
            "a withheld total says that the withheld cells in it are sensitive taken together",
        ),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class JointTable(Report):
    """A table over the records of all owners, of which only safe cells were opened."""

    question: str
    frame: pandas.DataFrame
    opened: tuple[Mapping[str, Any], ...]
    leakage: Leakage
    transcript: Mapping[str, Any]

    @property
    def withheld(self) -> int:
        """How many cells were not opened."""
        return int((self.frame["status"] != "safe").sum())

    def rows(self) -> Rows:
        """Return the cells, withheld ones without numbers."""
        body = self.frame.astype(object).where(self.frame.notna(), "")
        return tuple(map(str, self.frame.columns)), [tuple(row) for row in body.to_numpy()]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        import json

        return {
            "question": self.question,
            "cells": json.loads(self.frame.to_json(orient="records")),
            "opened": [dict(one) for one in self.opened],
            "leakage": self.leakage.to_dict(),
            "transcript": dict(self.transcript),
        }


def assembled(
    demand: Demand,
    policy: JointPolicy,
    withheld: npt.NDArray[np.bool_],
    values: npt.NDArray[np.int64],
    transcripts: Mapping[str, Any],
) -> JointTable:
    """Return the table that opened flags and values make."""
    import pandas as pd

    cells = demand.shown(policy)
    columns: dict[str, Any] = {}
    safe = np.flatnonzero(~withheld)

    def spread(found: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        whole = np.full(len(cells), np.nan)
        whole[safe] = found
        return whole

    found = dict(zip(demand.opened(), values, strict=True))
    for label, function, name in demand.outputs:
        if function == "key":
            place = demand.keys.index(name)
            columns[label] = [codes[place] for codes in cells]
        elif function in ("count", "units"):
            what = "count" if function == "count" else "contributors"
            columns[label] = pd.Series(spread(found[what, ""])).astype("Int64")
        else:
            sums = decode(found["sum", name], scale=policy.measures[name].scale)
            with np.errstate(invalid="ignore", divide="ignore"):
                columns[label] = spread(sums if function == "sum" else sums / found["count", ""])
    columns["status"] = np.where(withheld, "withheld", "safe")
    opened = next(iter(transcripts.values()))["opened"]
    return JointTable(
        demand.question, pd.DataFrame(columns), tuple(opened), leakage(policy), transcripts
    )
