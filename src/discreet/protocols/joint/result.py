"""What a joint question returns: the table, what was opened, and what each party learned."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.audit.rules import Rule
from discreet.data.hierarchy import Hierarchy
from discreet.data.hierarchy_files import file_name, write_hierarchies
from discreet.data.release import Evidence, Release
from discreet.page import Page, Section
from discreet.protocols.arithmetic.fixed_point import decode
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.joint.demand import Demand
from discreet.protocols.joint.learned import Leakage
from discreet.report import Report, Rows

if TYPE_CHECKING:
    import pandas

__all__ = ["JointAnswer", "Leakage", "leakage"]

#: Lines that a page shows.
_SHOWN = 400


#: What the choice of further cells tells besides the cells.
_MARGINS = (
    "which cells are sensitive and which only protect others is open to nodes and analysts",
    "a hypercube that was passed over says that a corner of it holds too little for the cell",
)


def leakage(collusion: int = 1, *, margins: bool = False) -> Leakage:
    """Return the statement of what parties learn from a joint table."""
    opened = "which cells are withheld; of the others counts and sums over all owners"
    coalition = "one owner" if collusion == 1 else f"up to {collusion} owners together"
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
            *(_MARGINS if margins else ()),
        ),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class JointAnswer(Report, Release):
    """A table over the records of all owners, of which only safe cells were opened.

    It is a release: `write` puts the cells, the hierarchies, the evidence and a page into a folder,
    and `discreet audit FOLDER/cells.csv` computes what anybody can infer from them.
    """

    #: Nothing is given away that the statement of leakage does not say.
    caution: ClassVar[str] = ""

    question: str
    frame: pandas.DataFrame
    opened: tuple[Mapping[str, Any], ...]
    leakage: Leakage
    transcript: Mapping[str, Any]
    #: The rules that were judged, as in the policy, and the tree of each column of keys.
    rules: tuple[Rule, ...] = ()
    trees: Mapping[str, Hierarchy] = dataclasses.field(default_factory=dict, repr=False)
    #: The columns of counts, and of sums; means follow from these.
    counts: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()

    @property
    def withheld(self) -> int:
        """How many cells were not opened."""
        return int((self.frame["status"] != "safe").sum())

    def rows(self) -> Rows:
        """Return the cells, withheld ones without numbers."""
        body = self.frame.astype(object).where(self.frame.notna(), "")
        return tuple(map(str, self.frame.columns)), [tuple(row) for row in body.to_numpy()]

    def title(self) -> str:
        """Return what is shown by what."""
        shown = ", ".join((*self.counts, *self.sums)) or "means"
        return f"{shown} by {' × '.join(self.trees) or 'nothing'}, of several owners"

    def evidence(self) -> Evidence:
        """Return the rules, how much is withheld, and what was opened."""
        return Evidence(
            "joint",
            {
                "question": self.question,
                "rules": [rule.settings() for rule in self.rules],
                "statistic": "sum" if self.sums else "count",
            },
            {"opened": [dict(one) for one in self.opened], "leakage": self.leakage.to_dict()},
            {"withheld": self.withheld, "cells": len(self.frame)},
            f"{self.withheld:,} of {len(self.frame):,} cells are withheld; no rule finds an opened "
            "cell sensitive, for the public or for an owner",
        )

    def write_files(self, folder: Path) -> None:
        """Write a file of cells for each sum, or for the counts, and a page for readers."""
        shown = (*self.sums, *self.counts)
        for place, name in enumerate(shown):
            part = self.frame[[*self.trees, name, "status"]].rename(columns={name: "value"})
            file = f"cells{f'-{file_name(name)}' if place else ''}.csv"
            part.to_csv(folder / file, index=False)
        for name, tree in self.trees.items():
            write_hierarchies((tree,), name, folder)
        (folder / "report.html").write_text(self.page().html(), encoding="utf-8")

    def page(self) -> Page:
        """Return the table, what each party learned and the messages, as a page."""
        from discreet.protocols.joint.pictures import run_sections

        header, lines = self.rows()
        cells = Section("Cells", table=(header, lines[:_SHOWN]))
        sections = [cells, *run_sections(self.transcript, self.leakage)]
        return Page(self.title(), sections, verdict=self.evidence().verdict, lead=self.question)

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
) -> JointAnswer:
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
    labels = {
        what: tuple(label for label, function, _ in demand.outputs if function in functions)
        for what, functions in {"counts": ("count", "units"), "sums": ("sum",)}.items()
    }
    written = [(label, name) for label, function, name in demand.outputs if function == "key"]
    return JointAnswer(
        demand.question,
        pd.DataFrame(columns),
        tuple(opened),
        leakage(policy.collusion, margins=demand.margins),
        transcripts,
        policy.rules,
        {label: policy.tree(name) for label, name in written},
        **labels,
    )
