"""Mask: one method after the other, then out without identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.data.dataset import Dataset, as_dataset
from discreet.data.frames import Library
from discreet.data.schema import Role
from discreet.errors import InputError
from discreet.microdata.decided import require_masked
from discreet.microdata.masking import Masking
from discreet.microdata.masking._base import IN_MEMORY
from discreet.microdata.release import MicrodataRelease
from discreet.microdata.telling import alike, require_masked_alike
from discreet.progress import Progress, silent
from discreet.randomness import Randomness

__all__ = ["mask"]


def mask(
    data: Any,
    methods: Sequence[Masking] | Masking,
    *,
    rng: Randomness | None = None,
    progress: Progress = silent,
) -> MicrodataRelease:
    """Return the file masked by one method after the other, without identifiers.

    Parameters
    ----------
    data
        A dataset or a frame. Any: every library has its own frame.
    methods
        The masking methods in their order; see `discreet methods masking`.
    rng
        The source of randomness; secure by default, and a release made with a seeded one cannot be
        written.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(
    ...     pd.DataFrame({"name": ["Ana", "Ben"], "age": [21, 38], "pay": [90, 250]}),
    ...     roles={"name": "identifier", "age": "quasi", "pay": "confidential"},
    ... )
    >>> safe = mask(people, [dc.Microaggregation("age", k=2), dc.TopCoding("pay", 200)])
    >>> safe.frame
        age  pay
    0  29.5   90
    1  29.5  200
    """
    steps = (methods,) if isinstance(methods, Masking) else tuple(methods)
    for step in steps:
        if not isinstance(step, Masking):
            raise InputError(
                f"a masking method is needed here, found {type(step).__name__}",
                code="malformed-member",
                hint="write methods=[dc.TopCoding('salary', 200_000), …]",
            )
    dataset = _with_masked_columns_kept(as_dataset(data), steps)
    require_masked(dataset, steps)
    for step in steps:  # before anything is done: a mistake in the last step shows at once
        step.require(dataset)
    rng = rng or Randomness.secure()
    there = [name for name in changed_by(steps) if name in dataset.columns]
    pairs = alike(dataset, there)
    masked = numbered = dataset.numbered()
    if len(dataset) > IN_MEMORY:  # risk and loss then look records up by their numbers
        dataset = masked
    for step in steps:
        masked = step.mask(masked, rng=rng, progress=progress).canonical().materialize()
    require_masked_alike(numbered, masked, pairs)
    is_random = any(step.is_random for step in steps)
    return MicrodataRelease(
        dataset,
        _without_identifiers(masked).replace(library=Library.for_release(masked.library)),
        steps,
        rng.kind if is_random else "none",
        draws={purpose: rng.spawn() for purpose in ("order", "risk", "loss", "sample")},
    )


def changed_by(steps: Sequence[Masking]) -> list[str]:
    """Return the columns that masking methods change, each once."""
    return list(dict.fromkeys(name for step in steps for name in step.changes))


def _with_masked_columns_kept(dataset: Dataset, steps: Sequence[Masking]) -> Dataset:
    """Take back a guess that a column identifies people where the curator masks the column.

    A role that the curator gave stays: masking does not make a name publishable.
    """
    masked = {name for step in steps for name in step.changes}
    guessed = [
        column.name
        for column in dataset.schema.columns
        if column.role is Role.IDENTIFIER and not column.decided and column.name in masked
    ]
    return dataset.replace(roles=dict.fromkeys(guessed, Role.OTHER)) if guessed else dataset


def _without_identifiers(masked: Dataset) -> Dataset:
    hidden = set(masked.schema.identifiers)
    kept = [name for name in masked.columns if name not in hidden]
    if not kept:
        raise InputError(
            "every column is an identifier, so nothing is left to release",
            code="nothing-to-release",
            hint="correct the roles, or pseudonymise an identifier",
        )
    return masked.select(kept) if hidden else masked
