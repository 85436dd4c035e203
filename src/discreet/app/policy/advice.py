"""Three policies to choose from: models, methods and breakdowns tried on the data itself.

Nothing is released. Every trial is measured in words a reader knows: what is promised, how often a
guess is right, what share of the records, of the detail or of the cells is lost.
"""

from __future__ import annotations

import dataclasses
import itertools
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.app.policy.document import parse
from discreet.app.policy.load import validate
from discreet.app.policy.starting import (
    Examined,
    breakdown_columns,
    examine,
    records_release,
    table_release,
    written_policy,
)
from discreet.chart import COLOURS, Axis, Series, bars, plot
from discreet.data.atomic import atomic_file
from discreet.errors import InfeasibleError, InputError
from discreet.page import Page, Section
from discreet.progress import Progress, silent
from discreet.registry import is_address
from discreet.report import Report, Rows

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.data.job import Job
    from discreet.data.source import Source

__all__ = ["Advice", "Candidate", "advise", "start_of", "write_advice"]

#: Class sizes that are tried; one candidate is proposed for each.
_SIZES = (3, 5, 10)
#: Methods by the name that people read, as a policy writes them.
_METHODS = {
    "generalization, at most 5% left out": "{generalization: {suppression: 0.05}}",
    "generalization, at most 10% left out": "{generalization: {suppression: 0.1}}",
    "Mondrian": "mondrian",
}


@dataclasses.dataclass(frozen=True)
class Candidate(Report):
    """One way to release, with what it promises and what it costs."""

    setup: str
    risk: str
    loss: str
    #: The shares that the words say, for pictures: right guesses or sensitive cells, and loss.
    risk_share: float
    loss_share: float
    #: The policy's text.
    policy: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Advice(Report):
    """Candidates, and how many trials they were chosen from."""

    kind: str
    candidates: tuple[Candidate, ...]
    tried: int
    #: Why trials were not possible, each reason once.
    failed: tuple[str, ...]
    #: Trials that the time did not reach.
    left: int
    to_decide: tuple[tuple[str, str], ...]
    #: Columns that may say to whom records belong; no candidate is released before that is decided.
    owners: tuple[str, ...] = ()

    def rows(self) -> Rows:
        """Return one line per candidate."""
        body = [(n, c.setup, c.risk, c.loss) for n, c in enumerate(self.candidates, start=1)]
        return ("", "candidate", "risk", "loss"), body

    def __str__(self) -> str:
        lines = [f"{self.tried} ways were tried; {self.left} were not reached in the time given."]
        for number, candidate in enumerate(self.candidates, start=1):
            lines += ["", f"{number}. {candidate.setup}"]
            lines += [f"   risk: {candidate.risk}", f"   loss: {candidate.loss}"]
        if not self.candidates:
            lines += ["", "None is possible as the columns stand:"]
        for reason in self.failed:
            lines += textwrap.wrap(
                f"not possible: {reason}", 80, initial_indent="", subsequent_indent="    "
            )
        if self.to_decide:
            held = ", ".join(name for name, _ in self.to_decide)
            lines += ["", f"Held back until you decide: {held}"]
        if self.owners:
            asked = f"Do records belong to {', '.join(self.owners)}? It was tried as if they did. "
            asked += "Say so as `unit:` in the policy, or delete the line; no release before."
            lines += textwrap.wrap(asked, 80, subsequent_indent="    ")
        return "\n".join(lines)

    def page(self) -> Page:
        """Return the advice with a picture of risk against loss."""
        sections = [Section("Candidates", table=self.rows())]
        if len(self.candidates) > 1:
            sections.append(Section("Risk against loss", picture=_picture(self)))
        return Page(
            "Advice",
            sections,
            lead="For the curator: measured on the records, nothing was released.",
        )


#: Tries one setup and returns it measured.
Trial = Callable[[], Candidate]


def advise(
    source: Source,
    *,
    kind: str | None = None,
    seconds: float = 60.0,
    progress: Progress = silent,
) -> Advice:
    """Try ways to release a source within a time, and propose three; releases nothing.

    Parameters
    ----------
    kind
        "anonymize" for records, the default; "table" for a table.
    seconds
        No trial begins after this time; the first always does.
    """
    looked = examine(source)
    place = start_of(source) / "policy.yaml"
    is_table = kind == "table"
    trials = list(_tables(looked, place) if is_table else _records(looked, place))
    done: list[Candidate] = []
    failed: dict[str, None] = {}
    left = 0
    end = time.monotonic() + seconds
    for number, trial in enumerate(trials):
        progress("trials", number, len(trials))
        if number and time.monotonic() > end:
            left = len(trials) - number
            break
        try:
            done.append(trial())
        except (InfeasibleError, InputError) as error:
            failed[error.message] = None
    chosen = _chosen_tables(done) if is_table else _chosen_records(done)
    tried = len(trials) - left
    name = "table" if is_table else "anonymize"
    return Advice(name, tuple(chosen), tried, tuple(failed), left, looked.to_decide, looked.owners)


def start_of(source: Source) -> Path:
    """Return the folder from which paths in the policies start: that of the data."""
    return Path() if is_address(source.source) else Path(source.source).absolute().parent


def _records(looked: Examined, place: Path) -> Iterator[Trial]:
    """Give one trial for every class size and method."""
    if not looked.trees:
        return
    dataset = looked.decided().open()
    # The sizes take turns, so that a short time still reaches each of them.
    for (words, method), k in itertools.product(_METHODS.items(), _SIZES):

        def trial(words: str = words, method: str = method, k: int = k) -> Candidate:
            return _of_records(looked, place, dataset, words, method, k)

        yield trial


def _job(policy: str, name: str) -> Job:
    """Return the release that a policy declares: what is measured is what is proposed."""
    found: Job = validate(parse(policy)).releases[name]
    return found


def _of_records(
    looked: Examined, place: Path, dataset: Dataset, words: str, method: str, k: int
) -> Candidate:
    lines = records_release(looked, k=k, method=method)
    policy = written_policy(looked, place, lines, is_table=False)
    evidence = _job(policy, "records").run(dataset).evidence()
    records, suppressed = evidence.loss["records"], evidence.loss["suppressed"]
    detail = float(evidence.loss["score"])
    guess = float(evidence.risk["guess within the class"])
    return Candidate(
        setup=f"classes of at least {k} people, by {words}",
        risk=f"a guess within the class is right for {guess:.1%} of the records",
        loss=f"{suppressed / records:.1%} of the records left out, {detail:.0%} of the detail lost",
        risk_share=guess,
        loss_share=detail,
        policy=policy,
    )


def _chosen_records(done: Sequence[Candidate]) -> list[Candidate]:
    """Return for each class size the trial that loses least detail."""
    best: dict[str, Candidate] = {}
    for candidate in done:
        size = candidate.setup.partition(",")[0]
        if size not in best or candidate.loss_share < best[size].loss_share:
            best[size] = candidate
    return list(best.values())


def _tables(looked: Examined, place: Path) -> Iterator[Trial]:
    """Give one trial for every breakdown by one, two or three columns."""
    columns = breakdown_columns(looked)[:4]
    for size in (2, 1, 3):
        for by in itertools.combinations(columns, size):

            def trial(by: tuple[str, ...] = by) -> Candidate:
                return _of_table(looked, place, by)

            yield trial


def _of_table(looked: Examined, place: Path, by: tuple[str, ...]) -> Candidate:
    policy = written_policy(looked, place, table_release(looked, by=by), is_table=True)
    source = dataclasses.replace(looked.decided(), hierarchies={})
    evidence = _job(policy, "table").run(source).evidence()
    cells, withheld = evidence.loss["cells"], evidence.loss["withheld"]
    share = withheld / cells if cells else 0.0
    return Candidate(
        setup="by " + ", ".join(by),
        risk=evidence.verdict,
        loss=f"{withheld:,} of {cells:,} cells withheld ({share:.0%}); {cells - withheld:,} published",
        risk_share=0.0,
        loss_share=share,
        policy=policy,
    )


def _chosen_tables(done: Sequence[Candidate]) -> list[Candidate]:
    """Return the three breakdowns that publish most, of those that withhold less than half."""
    fair = [one for one in done if one.loss_share < 0.5] or list(done)
    return sorted(fair, key=_published, reverse=True)[:3]


def _published(candidate: Candidate) -> int:
    return int(candidate.loss.rpartition("; ")[2].split()[0].replace(",", ""))


def _picture(advice: Advice) -> str:
    if advice.kind == "table":
        lines = {one.setup: {"withheld": one.loss_share} for one in advice.candidates}
        return bars(lines, Axis("cells withheld", is_percent=True))
    series = [
        Series(one.setup, [(one.loss_share, one.risk_share)], COLOURS[number % len(COLOURS)])
        for number, one in enumerate(advice.candidates)
    ]
    return plot(
        series, Axis("detail lost", is_percent=True), Axis("right guesses", is_percent=True)
    )


def write_advice(advice: Advice, folder: str | Path) -> list[Path]:
    """Write the candidates' policies and a page that compares them; return the files."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    texts = {
        f"policy-{number}.yaml": candidate.policy
        for number, candidate in enumerate(advice.candidates, start=1)
    }
    texts["advice.html"] = advice.page().html()
    for name, text in texts.items():
        with atomic_file(place / name) as file:
            file.write_text(text, encoding="utf-8")
    return [place / name for name in texts]
