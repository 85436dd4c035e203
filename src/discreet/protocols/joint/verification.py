"""Ledgers of several parties side by side, and whether their transcripts agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.errors import InputError
from discreet.ledger.opening import open_ledger
from discreet.report import Report, Rows

__all__ = ["JointVerification", "verify_ledgers"]


@dataclasses.dataclass(frozen=True)
class JointVerification(Report):
    """What the ledgers of several parties say of their joint runs."""

    #: Runs of which every party recorded its end.
    sessions: int
    messages: int
    opened: tuple[str, ...]
    findings: tuple[str, ...]
    #: Runs of which nobody recorded an end: broken off, as far as these ledgers tell.
    unfinished: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether runs could be verified, and nothing speaks against any."""
        return not self.findings and (self.sessions > 0 or not self.unfinished)

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        if not self.agrees:
            return f"the ledgers do not agree: {len(self.findings)} findings"
        left = f"{len(self.unfinished)} runs have no end here and could not be verified"
        if not self.sessions:
            return left if self.unfinished else "the ledgers hold no joint run"
        said = f"the transcripts of {self.sessions} runs agree, and nothing else was opened than stated"
        return f"{said}; {left}" if self.unfinished else said

    def rows(self) -> Rows:
        """Return what was opened, and what is wrong."""
        lines = [("opened", one) for one in self.opened]
        lines += [("without an end", one) for one in self.unfinished]
        return ("", ""), [*lines, *(("finding", one) for one in self.findings)]


def verify_ledgers(places: Sequence[str | Path]) -> JointVerification:
    """Compare what parties recorded of the same runs.

    A message must have left as it arrived, what was opened must be the same at every node, and
    every opening must have been recorded before it. A chain that was changed is a finding too, and so is
    a party of a run whose ledger was not given, says nothing of it, or breaks off before its end.
    """
    sessions: dict[str, dict[str, dict[str, Any]]] = {}
    findings: list[str] = []
    for place in places:
        if "://" not in str(place) and not Path(place).is_file():
            raise InputError(
                f"there is no ledger {place}", code="ledger-not-found", file=Path(place),
                hint="name the files that the parties gave as --ledger",
            )  # fmt: skip
        with open_ledger(place, read_only=True) as ledger:
            if not ledger.verify().intact:
                findings.append(f"{place}: the chain of entries is broken")
            for entry in ledger.entries():
                if entry.kind == "joint":
                    details = entry.details
                    run = sessions.setdefault(str(details["session"]), {})
                    party = run.setdefault(str(details["party"]), {})
                    stage = str(details["stage"])
                    if stage in party and not stage.startswith("opening "):
                        name = str(details["party"])
                        findings.append(
                            f"{details['session']!s:.8}: {name} recorded two runs as one"
                        )
                    party[stage] = details
    messages = complete = 0
    opened: list[str] = []
    unfinished: list[str] = []
    for session, parties in sessions.items():
        finished = {
            name: stages["finished"]["transcript"]
            for name, stages in parties.items()
            if "finished" in stages
        }
        if not finished:
            announced = {one for stages in parties.values() for one in stages if "opening" in one}
            unfinished.append(f"{session[:8]}: " + ("; ".join(sorted(announced)) or "no opening"))
            continue
        complete += 1
        findings += _absent(session[:8], parties, finished)
        # In a table all nodes open the same; in other computations some is opened to some.
        together = any("started" in stages for stages in parties.values())
        count, wrong = _compared(session[:8], finished, together=together)
        messages += count
        findings += wrong
        findings += _unannounced(session[:8], parties, finished)
        shown: list[Any] = next((t["opened"] for t in finished.values() if t["opened"]), [])
        opened += [f"{session[:8]}: {one['meaning']} ({one['cells']} cells)" for one in shown]
    return JointVerification(complete, messages, tuple(opened), tuple(findings), tuple(unfinished))


def _absent(
    session: str, parties: Mapping[str, Mapping[str, Any]], finished: Mapping[str, Any]
) -> list[str]:
    """Return who took part by what others recorded, and did not record it to the end."""
    begun = [
        stages[first]
        for stages in parties.values()
        for first in ("started", "computing")
        if first in stages
    ]
    named = {str(one) for details in begun for one in details.get("parties", ())}
    may_leave = {str(one) for details in begun for one in details.get("may_leave", ())}
    # Whoever may leave took part only where messages were exchanged with it.
    named -= may_leave
    met = {
        str(peer)
        for transcript in finished.values()
        for way in ("sent", "received")
        for peer, said in transcript[way].items()
        if said["messages"]
    }
    found = []
    for name in sorted(named | met):
        if name not in parties:
            found.append(f"{session}: no ledger given here records that {name} took part")
        elif name not in finished and name not in may_leave:
            found.append(f"{session}: {name} recorded no end of the run")
    return found


def _compared(
    session: str, finished: Mapping[str, Any], *, together: bool
) -> tuple[int, list[str]]:
    messages = 0
    findings: list[str] = []
    for sender, transcript in finished.items():
        for receiver, sent in transcript["sent"].items():
            if receiver not in finished:
                continue
            messages += int(sent["messages"])
            if finished[receiver]["received"].get(sender) != sent:
                findings.append(f"{session}: what {sender} sent is not what {receiver} received")
    shown = {name: t["opened"] for name, t in finished.items() if t["opened"]}
    if together and len({str(one) for one in shown.values()}) > 1:
        findings.append(f"{session}: the nodes state different openings")
    said: dict[str, set[str]] = {}
    for listed in shown.values():
        for one in listed:
            said.setdefault(str(one.get("meaning")), set()).add(str(one.get("digest")))
    findings += [
        f"{session}: parties state different contents of: {meaning}"
        for meaning, digests in said.items()
        if len(digests) > 1 and not together
    ]
    return messages, findings


def _unannounced(
    session: str, parties: Mapping[str, Mapping[str, Any]], finished: Mapping[str, Any]
) -> list[str]:
    return [
        f"{session}: {name} opened without recording it before: {one['meaning']}"
        for name, transcript in finished.items()
        for one in transcript["opened"]
        if f"opening {one['meaning']}" not in parties[name]
        or not {"started", "computing"} & set(parties[name])
    ]
