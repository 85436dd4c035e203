"""Synthesise: a model of the file, and records drawn from it."""

from __future__ import annotations

import dataclasses
import numbers
from typing import Any

from discreet.data.dataset import Dataset, as_dataset
from discreet.data.frames import Library
from discreet.dp.grant import charge
from discreet.errors import InputError
from discreet.ledger.memory import Memory
from discreet.ledger.recording import standing_in
from discreet.microdata.bought import bought_distances, with_report
from discreet.microdata.decided import require_release
from discreet.microdata.judgement import like
from discreet.microdata.synthesizers import Synthesizer
from discreet.microdata.synthesizers._base import released_columns
from discreet.microdata.synthesizers._private import PrivateSynthesizer
from discreet.microdata.synthetic_release import SyntheticRelease
from discreet.microdata.telling import require_untold
from discreet.progress import Progress, silent
from discreet.randomness import Randomness

__all__ = ["require_synthesis", "synthesize"]

#: More files than this are a mistake.
_MOST_SETS = 1_000
#: Values in all files together, which are held in memory.
_MOST_VALUES = 1_000_000_000


def synthesize(
    data: Any,
    method: Synthesizer | None = None,
    *,
    m: int | None = None,
    n: int | None = None,
    report_budget: float | None = None,
    ledger: Any = None,
    snapshot: str | None = None,
    rng: Randomness | None = None,
    progress: Progress = silent,
) -> SyntheticRelease:
    """Return files of synthetic records, with what they keep and what protects people.

    Parameters
    ----------
    data
        A dataset or a frame. Any: every library has its own frame.
    method
        The synthesizer; see `discreet methods synthesizer`. `dc.CART()` by default.
    m
        How many files; one by default.
    n
        How many records each; as many as the original has by default, and as noise says it has
        where the promise is differential privacy.
    report_budget
        A further ε, at the method's δ, that buys a private measure of what the file lost for its
        published report; of a private method nothing is measured there otherwise.
    ledger
        The memory of earlier releases: a path, an address or a ledger. A private method is charged
        to its grant before any noise is drawn, also where nothing comes of it.
    snapshot
        The name of this state of the records, for the ledger.
    rng
        The source of randomness; secure by default, and a release made with a seeded one cannot be
        written.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(
    ...     pd.DataFrame({"age": [20, 60] * 50, "job": ["student", "retired"] * 50}),
    ...     roles={"age": "quasi", "job": "other"},
    ... )
    >>> made = synthesize(people, dc.CART(min_leaf=5), m=2, n=30)
    >>> [len(file) for file in made.sets], made.frame.columns.tolist()
    ([30, 30], ['age', 'job'])
    """
    chosen = method
    if chosen is None:
        from discreet.microdata.synthesizers.cart import CART

        chosen = CART()
    if not isinstance(chosen, Synthesizer):
        raise InputError(
            f"a synthesizer is needed here, found {type(chosen).__name__}",
            code="malformed-member",
            hint="write method=dc.CART(), dc.AIM(epsilon=1, delta=1e-9), …",
        )
    several = _sets(m, chosen)
    if n is not None:
        _require_whole("n", n)
        if n < 1:
            raise InputError(
                f"n must be at least 1, found {n}", code="parameter-range", parameter="n"
            )
        n = int(n)
    dataset = as_dataset(data)
    require_synthesis(dataset, chosen)
    _require_room(dataset, n, several)
    if n is not None and chosen.corresponds and n != len(dataset):
        raise InputError(
            f"{chosen.name} gives a record for each original one, so n cannot be chosen",
            code="parameter-range",
            hint="leave out n",
            parameter="n",
        )
    rng = rng or Randomness.secure()
    spent, report = chosen.budget(), 0.0
    if report_budget is not None:
        if not isinstance(chosen, PrivateSynthesizer) or spent is None:
            raise InputError(
                f"{chosen.name} has no budget, so that no report can be bought",
                code="parameter-range",
                hint="leave out report_budget: what was lost is measured as it is",
                parameter="report_budget",
            )
        spent, report = with_report(spent, report_budget)
    if spent is None:
        chosen.prepare(dataset)
    standing = None
    if ledger is not None:
        with Memory(ledger, dataset, snapshot=snapshot) as memory:
            charged = None
            if spent is not None:
                what = f"synthetic records by {chosen.name}"
                charged = charge(memory.ledger, dataset.name, spent.events, what=what)
            standing = standing_in(memory, charged)
    if spent is not None:  # whether the records fit tells of them: the charge comes first
        chosen.prepare(dataset)
    fitted = chosen.among(several).fit(dataset, rng=rng, progress=progress)
    size = n if n is not None else fitted.size
    files = tuple(_file(dataset, fitted.draw(size, rng=rng)) for _ in range(several))
    bought = None
    if report_budget is not None and isinstance(chosen, PrivateSynthesizer):
        with chosen.tables(dataset) as true, chosen.tables(files[0], of=dataset) as made:
            bought = bought_distances(
                true, made, records=fitted.size, epsilon=report_budget, rho=report, rng=rng
            )
    return SyntheticRelease(
        dataset,
        files[0],
        (),
        rng.kind,
        notes=dict(fitted.notes),
        draws={purpose: rng.spawn() for purpose in ("order", "risk", "loss")},
        method=chosen,
        files=files,
        model=fitted,
        spent=spent,
        standing=standing,
        bought=bought,
    )


def require_synthesis(dataset: Dataset, method: Synthesizer) -> None:
    """Raise an InputError if columns were not decided on or the method does not fit them."""
    method.check(dataset)
    hidden = [name for name in dataset.columns if name not in released_columns(dataset)]
    changed = () if method.protection == "measured" else released_columns(dataset)
    require_release(dataset, kept=hidden, changed=changed)
    if untouched := method.untouched(dataset):  # beside a tax no salary need be drawn anew
        drawn = [name for name in released_columns(dataset) if name not in untouched]
        require_untold(dataset, drawn, leaving=untouched)


def _sets(m: int | None, method: Synthesizer) -> int:
    found = m if m is not None else method.sets or 1
    _require_whole("m", found)
    if not 1 <= found <= _MOST_SETS:
        raise InputError(
            f"m must be between 1 and {_MOST_SETS:,}, found {found}",
            code="parameter-range",
            parameter="m",
        )
    return int(found)


def _require_whole(name: str, value: object) -> None:
    # numpy's whole numbers count; True and 5.0 are mistakes.
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InputError(
            f"{name} must be a whole number, found {value!r}",
            code="parameter-type",
            hint=f"write {name}=5",
            parameter=name,
        )


def _require_room(dataset: Dataset, n: int | None, files: int) -> None:
    columns = len(released_columns(dataset))
    if n is not None and n * files * columns > _MOST_VALUES:
        most = max(1, _MOST_VALUES // (files * columns))
        raise InputError(
            f"files of {n:,} records are too large to be held in memory",
            code="parameter-range",
            hint=f"write n={most:,} at most, or draw several files one after the other",
            parameter="n",
        )


def _file(dataset: Dataset, rows: Any) -> Dataset:
    # Any: an Arrow table.
    made = like(dataset, rows)
    # A file is written by its own library, not by the one that read a database.
    return dataclasses.replace(made, library=Library.for_release(dataset.library))
