"""What a verification found: each promise, and whether the bytes keep it."""

from __future__ import annotations

import dataclasses

from discreet.report import Report, Rows

__all__ = ["BROKEN", "KEPT", "NO_PROMISES", "UNKNOWN", "Finding", "Verification", "judged"]

KEPT, BROKEN, UNKNOWN = "kept", "broken", "not checked"
#: The promise of a release that states none as data.
NO_PROMISES = "promises"


@dataclasses.dataclass(frozen=True)
class Finding(Report):
    """One promise about one file; its words hold counts and names of columns, and no value.

    Examples
    --------
    >>> Finding("people.csv", "k-anonymity", "broken", "2 of 40 classes break it").holds
    False
    """

    file: str
    promise: str
    #: "kept", "broken" or "not checked".
    verdict: str
    found: str = ""

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the promise."""
        return self.verdict != BROKEN


@dataclasses.dataclass(frozen=True)
class Verification(Report):
    """All promises of a release, judged from its files."""

    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether no promise is broken."""
        return all(finding.holds for finding in self.findings)

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The promises that the files break."""
        return tuple(finding for finding in self.findings if not finding.holds)

    @property
    def unchecked(self) -> tuple[Finding, ...]:
        """The promises that the files alone cannot show."""
        return tuple(finding for finding in self.findings if finding.verdict == UNKNOWN)

    @property
    def verdict(self) -> str:
        """One sentence in plain words."""
        if not self.holds:
            return f"broken: {len(self.broken)} of {len(self.findings)} promises do not hold in the files"
        kept = len(self.findings) - len(self.unchecked)
        if any(finding.promise == NO_PROMISES for finding in self.unchecked):
            return "not shown: a release states no promises as data, so that nothing shows what it keeps"
        rest = f"; {len(self.unchecked)} cannot be checked from the files" if self.unchecked else ""
        return f"kept: {kept} promises hold in the files{rest}"

    def rows(self) -> Rows:
        """Return one line per promise."""
        return ("file", "promise", "verdict", "found"), [
            (f.file, f.promise, f.verdict, f.found) for f in self.findings
        ]


def judged(file: str, promise: str, wrong: str | None) -> Finding:
    """Return a promise as kept, or as broken if something is wrong."""
    return Finding(file, promise, KEPT if wrong is None else BROKEN, wrong or "")
