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
from typing import TYPE_CHECKING, Any

from discreet.app.policy.document import parse
from discreet.app.policy.load import validate
from discreet.app.policy.starting import (
    Examined,
    breakdown_columns,
    diverse,
    examine,
    measure_column,
    records_release,
    table_release,
    table_trees,
    written_policy,
)
from discreet.chart import COLOURS, Axis, Series, plot
from discreet.data.atomic import atomic_file
from discreet.data.declared import declared
from discreet.errors import InfeasibleError, InputError
from discreet.page import Page, Section
from discreet.progress import Progress, silent
from discreet.registry import is_address
from discreet.report import Report, Rows
from discreet.tables.release import TableRelease

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.data.job import Job
    from discreet.data.source import Source

__all__ = ["Advice", "Candidate", "advise", "start_of", "write_advice"]

#: Least class size and least number of different confidential values that are tried.
_PROMISES = ((3, 2), (5, 2), (10, 2), (5, 3))
#: How many candidates are proposed.
_PROPOSED = 3
#: Methods by the name that people read, as a policy writes them.
_METHODS = {
    "generalization, at most 5% left out": "{generalization: {suppression: 0.05}}",
    "generalization, at most 10% left out": "{generalization: {suppression: 0.1}}",
    "Mondrian": "mondrian",
}


#: Parameters of the rules of a table: p of p-percent, least contributors. The first is tried first.
_RULES = ((10, 3), (20, 5))
#: How a table is protected: of sums, and of counts.
_TABLE_METHODS = {True: "controlled-tabular-adjustment", False: "controlled-rounding"}
#: A breakdown that withholds more than this share of its cells is proposed only if all do.
_FAIR = 0.5


@dataclasses.dataclass(frozen=True)
class Candidate(Report):
    """One way to release, with what it promises and what it costs."""

    setup: str
    risk: str
    loss: str
    #: The shares that the words say, for pictures: right guesses, or how near somebody comes to a
    #: sensitive cell (0: no nearer than anything, 1: exactly); and what is lost.
    risk_share: float
    loss_share: float
    #: What is promised, strongest last: of two that lose the same the stronger is proposed.
    strength: tuple[int, ...] = dataclasses.field(repr=False)
    #: What candidates should differ in: the promise for records, columns and method for tables.
    group: tuple[str, ...] = dataclasses.field(repr=False)
    #: What is still there: the share of records and detail, or the number of published cells.
    kept: float = dataclasses.field(repr=False)
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
    # The promises take turns, so that a short time still reaches each of them.
    fewest = min(_PROMISES)[1]
    promises = [one for one in _PROMISES if one[1] == fewest or diverse(looked)]
    for (words, method), promise in itertools.product(_METHODS.items(), promises):

        def trial(
            words: str = words, method: str = method, promise: tuple[int, int] = promise
        ) -> Candidate:
            return _of_records(looked, place, dataset, words, method, promise)

        yield trial


def _job(policy: str, name: str) -> Job:
    """Return the release that a policy declares: what is measured is what is proposed."""
    found: Job = validate(parse(policy)).releases[name]
    return found


def _of_records(
    looked: Examined,
    place: Path,
    dataset: Dataset,
    words: str,
    method: str,
    least: tuple[int, int],
) -> Candidate:
    k, different = least
    lines = records_release(looked, k=k, different=different, method=method)
    policy = written_policy(looked, place, lines, is_table=False)
    evidence = _job(policy, "records").run(dataset).evidence()
    records, suppressed = evidence.loss["records"], evidence.loss["suppressed"]
    detail = float(evidence.loss["score"])
    guess = float(evidence.risk["guess within the class"])
    several = f" with {different} values of what is confidential" if diverse(looked) else ""
    promise = f"classes of at least {k} people{several}"
    return Candidate(
        setup=f"{promise}, by {words}",
        risk=f"a guess within the class is right for {guess:.1%} of the records",
        loss=f"{suppressed / records:.1%} of the records left out, {detail:.0%} of the detail lost",
        risk_share=guess,
        loss_share=detail,
        policy=policy,
        strength=least,
        group=(promise,),
        kept=1 - detail,
    )


def _tables(looked: Examined, place: Path) -> Iterator[Trial]:
    """Give trials of breakdowns by one to three columns, then of other methods and rules."""
    columns = breakdown_columns(looked)[:4]
    pairs, singles, triples = (list(itertools.combinations(columns, n)) for n in (2, 1, 3))
    trees: Any = declared(table_trees(looked))  # none is made yet: all are declared
    source = dataclasses.replace(looked.decided(), hierarchies=trees)
    other = _TABLE_METHODS[measure_column(looked) is not None]
    usual, *stronger = _RULES
    # Small tables first, so that a short time reaches every method.
    trials = [
        *itertools.product([("suppression", usual)], [*pairs, *singles]),
        *itertools.product([(other, usual)], pairs),
        *itertools.product([("suppression", one) for one in stronger], [*pairs, *singles]),
        *itertools.product([("suppression", usual), (other, usual)], triples),
    ]
    for (method, rules), by in trials:

        def trial(
            by: tuple[str, ...] = by, method: str = method, rules: tuple[int, int] = rules
        ) -> Candidate:
            return _of_table(looked, place, source, by, method, rules)

        yield trial


def _of_table(
    looked: Examined,
    place: Path,
    source: Source,
    by: tuple[str, ...],
    method: str,
    rules: tuple[int, int],
) -> Candidate:
    p, least = rules
    lines = table_release(looked, by=by, p=p, least=least, method=method)
    policy = written_policy(looked, place, lines, is_table=True)
    release = _job(policy, "table").run(source)
    assert isinstance(release, TableRelease)
    release.require_releasable()
    loss = release.loss
    kept = loss.cells - loss.withheld
    if loss.changed:
        share = loss.relative_distance
        lost = f"{loss.changed:,} of {loss.cells:,} cells changed, on average by {share:.1%}"
    else:
        share = loss.withheld / loss.cells if loss.cells else 0.0
        lost = f"{loss.withheld:,} of {loss.cells:,} cells withheld ({share:.0%})"
    near, words = _nearness(release)
    rule = f"p {p} %, " if measure_column(looked) is not None else ""
    return Candidate(
        setup=f"by {', '.join(by)}; {rule}at least {least} contributors; {method}",
        risk=words,
        loss=f"{lost}; {kept:,} published",
        risk_share=near,
        loss_share=share,
        policy=policy,
        strength=rules,
        group=(*by, method),
        kept=kept,
    )


def _nearness(release: TableRelease) -> tuple[float, str]:
    """Return how near the published cells bring somebody to a sensitive one, and in words."""
    who = (
        "a contributor" if release.evidence().risk["attacker"] == "contributors" else "an outsider"
    )
    found = release.audit().intervals
    low, high = (found[end].to_numpy(dtype=float) for end in ("lower", "upper"))
    if not len(low):
        return 0.0, "no cell is sensitive"
    if release.loss.changed and not (high > low).any():
        # The cells are shown, changed: what they were is as far away as each was moved.
        away = [
            abs(2 * cell - least - most) / max(abs(least + most), 1e-9)
            for cell, least, most in zip(low, found["need_lower"], found["need_upper"], strict=True)
        ]
        return 1 - min(*away, 1.0), (
            f"{len(low):,} sensitive cells, each shown at least {min(away):.0%} beside its value"
        )
    middle = abs(high + low) / 2
    width = high - low
    half = [w / 2 / m if m > 0 else 1.0 for w, m in zip(width, middle, strict=True)]
    return 1 - min(*half, 1.0), (
        f"{len(low):,} sensitive cells; {who} learns the closest of them within ±{min(half):.0%}"
    )


def _chosen_records(done: Sequence[Candidate]) -> list[Candidate]:
    """Return for each promise the trial that loses least detail, the weakest promise first.

    Of two that come to the same, the one that promises more stands for both.
    """
    distinct = _strongest(done, lambda one: (one.risk, one.loss))
    ranked = sorted(distinct, key=lambda one: one.kept, reverse=True)
    best = _first(ranked, lambda one: one.strength)
    best.sort(key=lambda one: _PROMISES.index(one.strength))
    rest = [one for one in ranked if one not in best]
    return sorted([*best, *rest][:_PROPOSED], key=lambda one: (one.strength, -one.kept))


def _chosen_tables(done: Sequence[Candidate]) -> list[Candidate]:
    """Return the two breakdowns that publish most, and one of them by the other method.

    Breakdowns that lose half of their cells come last; where a stronger rule costs nothing more, it stands.
    """
    distinct = _strongest(done, lambda one: (one.group[:-1], one.loss))
    ranked = sorted(distinct, key=lambda one: (one.loss_share < _FAIR, one.kept), reverse=True)
    best = _first(ranked, lambda one: one.group)
    withheld = [one for one in best if one.group[-1] == "suppression"]
    columns = [one.group[:-1] for one in withheld]
    changed = [one for one in best if one not in withheld and one.group[:-1] in columns[:2]]
    wanted = [*withheld[:2], *changed[:1], *withheld[2:], *ranked]
    chosen = list({id(one): one for one in wanted}.values())[:_PROPOSED]
    return sorted(chosen, key=lambda one: one.kept, reverse=True)


def _strongest(done: Sequence[Candidate], alike: Callable[[Candidate], object]) -> list[Candidate]:
    """Return of candidates that are alike the one that promises most."""
    return _first(sorted(done, key=lambda one: one.strength, reverse=True), alike)


def _first(done: Sequence[Candidate], alike: Callable[[Candidate], object]) -> list[Candidate]:
    found: dict[object, Candidate] = {}
    for one in done:
        found.setdefault(alike(one), one)
    return list(found.values())


def _picture(advice: Advice) -> str:
    is_table = advice.kind == "table"
    risk = "how near a sensitive cell is learned" if is_table else "right guesses"
    series = [
        Series(one.setup, [(one.loss_share, one.risk_share)], COLOURS[number % len(COLOURS)])
        for number, one in enumerate(advice.candidates)
    ]
    lost = "lost or changed" if is_table else "detail lost"
    return plot(series, Axis(lost, is_percent=True), Axis(risk, is_percent=True))


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
