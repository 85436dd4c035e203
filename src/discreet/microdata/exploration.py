"""Explore: methods and parameters side by side, as a map of risk against loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.data.atomic import atomic_directory, written_files
from discreet.data.dataset import Dataset, as_dataset
from discreet.errors import DiscreetError, InputError, nearest
from discreet.microdata.assessment import risk
from discreet.microdata.comparison import utility
from discreet.microdata.judgement import Unpaired, like
from discreet.microdata.masking import Masking
from discreet.microdata.pipeline import mask
from discreet.microdata.risks._base import RiskMeasure
from discreet.microdata.synthesis import synthesize
from discreet.microdata.synthesizers import Synthesizer
from discreet.microdata.utilities._base import UtilityMeasure
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.report import Report, Rows

__all__ = ["Candidate", "RiskUtilityMap", "frontier"]

Way = Masking | Synthesizer | Sequence[Masking]
Candidates = Sequence[Way] | Mapping[str, Way] | Any


@dataclasses.dataclass(frozen=True)
class Candidate(Report):
    """One way of masking: what it risks, what it loses, and how to do it again."""

    name: str
    risk: float | None
    loss: float | None
    #: Whether no other candidate has both less risk and less loss.
    front: bool
    methods: tuple[dict[str, Any], ...]
    #: Why it could not be done, where it could not.
    problem: str = ""


@dataclasses.dataclass(frozen=True)
class RiskUtilityMap(Report):
    """Candidates with their risk and loss; those on the Pareto front are marked."""

    risk_measure: str
    loss_measure: str
    candidates: tuple[Candidate, ...]

    @property
    def front(self) -> tuple[Candidate, ...]:
        """The candidates that no other one beats on both counts, by growing loss."""
        found = [c for c in self.candidates if c.front]
        return tuple(sorted(found, key=lambda c: c.loss or 0.0))

    def __getitem__(self, name: str) -> Candidate:
        for candidate in self.candidates:
            if candidate.name == name:
                return candidate
        guess = nearest(name, [c.name for c in self.candidates])
        raise InputError(
            f"there is no candidate {name!r}",
            code="unknown-candidate",
            hint=f"write {guess!r}" if guess else "see the table",
        )

    def rows(self) -> Rows:
        """Return one line per candidate, by risk."""
        order = sorted(self.candidates, key=lambda c: (c.risk is None, c.risk, c.loss))
        return ("candidate", "risk", "loss", "front", "problem"), [
            (c.name, c.risk, c.loss, "●" if c.front else "", c.problem) for c in order
        ]

    def policy(self, name: str) -> dict[str, Any]:
        """Return the part of a policy file that releases a candidate."""
        methods = [
            {m["name"]: {k: v for k, v in m.items() if k != "name" and v not in (None, [], ())}}
            for m in self[name].methods
        ]
        if self[name].methods and self[name].methods[0]["name"] in _synthesizers():
            return {"releases": [{"name": "microdata", "kind": "synthesize", "method": methods[0]}]}
        return {"releases": [{"name": "microdata", "kind": "mask", "methods": methods}]}

    def picture(self) -> str:
        """Return the map as SVG."""
        from discreet.microdata.pictures import scatter

        points = [
            {"name": c.name, "risk": c.risk, "loss": c.loss, "front": c.front}
            for c in self.candidates
            if c.risk is not None
        ]
        return scatter(
            points, across=f"loss ({self.loss_measure})", up=f"risk ({self.risk_measure})"
        )

    def page(self) -> str:
        """Return map and table as a page for people."""
        from discreet.page import Page, Section

        best = ", ".join(c.name for c in self.front)
        words = "Down is safer, left is more useful; no candidate beats those on the line on both."
        settings: Rows = (
            ("candidate", "policy"),
            [(c.name, _said(self.policy(c.name)["releases"][0])) for c in self.candidates],
        )
        sections = [
            Section("Risk and loss", words, picture=self.picture()),
            Section("Candidates", table=self),
            Section("How to do it again", "As a policy file says it.", table=settings),
        ]
        return Page("Risk–utility map", sections, verdict=f"On the front: {best}").html()

    def write(self, folder: str | Path) -> Path:
        """Write the map as a page, a table and plain data."""
        import json

        from discreet.report import plain

        with atomic_directory(folder) as temporary:
            (temporary / "map.html").write_text(self.page(), encoding="utf-8")
            (temporary / "map.svg").write_text(self.picture(), encoding="utf-8")
            self.to_frame().to_csv(temporary / "map.csv", index=False)
            stated = plain(self) | {"files": written_files(temporary)}
            text = json.dumps(stated, indent=2, ensure_ascii=False)
            (temporary / "map.json").write_text(text + "\n", encoding="utf-8")
        return Path(folder)

    def _repr_html_(self) -> str:
        return self.picture() + super()._repr_html_()


def frontier(
    data: Any,
    candidates: Candidates,
    *,
    risk_measures: Sequence[RiskMeasure] | None = None,
    loss_measure: UtilityMeasure | None = None,
    rng: Randomness | None = None,
    progress: Progress = silent,
) -> RiskUtilityMap:
    """Return the risk–utility map of several ways of masking a file.

    Parameters
    ----------
    data
        A dataset or a frame. Any: every library has its own frame.
    candidates
        Masking methods, lists of them applied in order, or finished releases (such as those of
        `dc.anonymize`); as a list or by name. Where one of them is a synthesizer, whose records
        are nobody's, all are compared on half of the records, drawn by lot, with the other half as
        people who are not in the file.
    risk_measures
        The largest of these is the risk; by default exact and nearest-neighbour linkage, and
        membership where there is a synthesizer.
    loss_measure
        The loss; by default the mean loss of a value, and of marginals where there is a synthesizer.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(pd.DataFrame({"age": range(60)}), roles={"age": "quasi"})
    >>> found = frontier(people, [dc.Microaggregation("age", k=k) for k in (2, 5)])
    >>> [(c.name, round(c.risk, 2)) for c in found.front]
    [('microaggregation k=2', 0.5), ('microaggregation k=5', 0.2)]
    """
    from discreet.microdata.risks.membership import Membership
    from discreet.microdata.risks.record_linkage import RecordLinkage
    from discreet.microdata.utilities.marginals import Marginals
    from discreet.microdata.utilities.value_loss import ValueLoss

    dataset = as_dataset(data)
    rng = rng or Randomness.secure()
    named = _named(candidates)
    unpaired = any(isinstance(way, Synthesizer) for way in named.values())
    dangers = risk_measures or (
        [Membership()] if unpaired else [RecordLinkage("exact"), RecordLinkage("distance")]
    )
    loss = loss_measure or (Marginals() if unpaired else ValueLoss())
    inside, outside = _halves(dataset, rng) if unpaired else (dataset, None)
    found = []
    for done, (name, way) in enumerate(named.items()):
        progress("explore", done, len(named))
        found.append(_evaluated(inside, outside, name, way, dangers, loss, rng))
    progress("explore", len(named), len(named))
    usual = "people told to be in the file" if unpaired else "people linked"
    label = usual if risk_measures is None else ", ".join(m.name for m in dangers)
    return RiskUtilityMap(label, loss.name, tuple(_marked(found)))


def _synthesizers() -> set[str]:
    from discreet.registry import members

    return set(members("synthesizer"))


def _said(release: Mapping[str, Any]) -> str:
    return str(release.get("methods") or release.get("method"))


def _halves(dataset: Dataset, rng: Randomness) -> tuple[Dataset, Dataset]:
    """Return two halves of the records, drawn by lot."""
    rows = dataset.arrow()
    order, half = rng.permutation(rows.num_rows), rows.num_rows // 2
    return like(dataset, rows.take(order[:half])), like(dataset, rows.take(order[half : 2 * half]))


def _evaluated(
    dataset: Dataset,
    outside: Dataset | None,
    name: str,
    way: Any,
    dangers: Sequence[RiskMeasure],
    loss: UtilityMeasure,
    rng: Randomness,
) -> Candidate:
    # Any: a pipeline of masking methods or a release of any kind.
    is_pipeline, is_drawn = isinstance(way, tuple), isinstance(way, Synthesizer)
    if is_pipeline or is_drawn:
        settings = tuple(m.settings() for m in (way if is_pipeline else (way,)))
    else:
        settings = tuple(way.evidence().settings.get("methods", ()))
    try:
        release = way
        if is_pipeline:
            release = mask(dataset, way, rng=rng)
        elif is_drawn:
            release = synthesize(dataset, way, rng=rng)
        if outside is not None:
            # Whoever was left out is compared with the records as they leave, in no order.
            release = Unpaired(as_dataset(release))
        danger = risk(dataset, release, measures=dangers, holdout=outside, rng=rng)
        lost = utility(dataset, release, measures=[loss], rng=rng)
    except DiscreetError as error:
        # One impossible candidate must not hide the others.
        return Candidate(name, None, None, False, settings, str(error))
    return Candidate(name, danger.value, lost.comparisons[0].value, False, settings)


def _marked(found: Sequence[Candidate]) -> list[Candidate]:
    """Mark the candidates that no other one beats."""
    marked = []
    for one in found:
        beaten = one.risk is None or any(
            other.risk is not None
            and other.loss is not None
            and one.loss is not None
            and other.risk <= one.risk
            and other.loss <= one.loss
            and (other.risk, other.loss) != (one.risk, one.loss)
            for other in found
        )
        marked.append(dataclasses.replace(one, front=not beaten))
    return marked


def _named(candidates: Any) -> dict[str, Any]:
    # Any: see `frontier`.
    if isinstance(candidates, Mapping):
        return {name: _pipeline(way) for name, way in candidates.items()}
    one = isinstance(candidates, Masking | Synthesizer)
    given = [candidates] if one else list(candidates)
    if not given:
        raise InputError("no candidate is given", code="missing-method")
    named: dict[str, Any] = {}
    for way in map(_pipeline, given):
        if isinstance(way, tuple | Synthesizer):
            name = " + ".join(map(_label, way if isinstance(way, tuple) else (way,)))
        else:
            name = str(way)
        unique, number = name, 2
        while unique in named:
            unique, number = f"{name} ({number})", number + 1
        named[unique] = way
    return named


def _pipeline(way: Any) -> Any:
    if isinstance(way, Masking):
        return (way,)
    return tuple(way) if isinstance(way, list | tuple) else way


def _label(method: Masking | Synthesizer) -> str:
    """Return name and parameters that differ from the defaults, columns left out."""
    parts = [
        f"{item.name}={getattr(method, item.name):g}"
        if isinstance(getattr(method, item.name), float)
        else f"{item.name}={getattr(method, item.name)}"
        for item in method.parameters()
        if item.name not in ("columns", "within", "given", "keys", "match", "household", "strata")
        and (getattr(method, item.name) != item.default or item.name in ("k", "p", "alpha"))
    ]
    return " ".join([method.name, *parts])
