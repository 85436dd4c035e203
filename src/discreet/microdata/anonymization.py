"""Anonymise: fix the promises, lose as little as possible."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.dataset import Dataset, as_dataset
from discreet.data.frames import Library
from discreet.errors import EngineError, InputError
from discreet.ledger.memory import Memory
from discreet.ledger.recording import standing_in
from discreet.ledger.store import Ledger
from discreet.microdata.anonymized import Anonymized
from discreet.microdata.decided import decided_keys, require_keys
from discreet.microdata.memory import (
    EARLIER,
    earlier_classes,
    with_earlier,
)
from discreet.microdata.methods import Anonymization
from discreet.microdata.models import Model
from discreet.microdata.models._base import ModelCheck
from discreet.progress import Progress, silent

if TYPE_CHECKING:
    from discreet.microdata.methods._base import Outcome

__all__ = ["Anonymized", "anonymize", "require_models"]


def anonymize(
    data: Any,
    models: Sequence[Model] | Model,
    *,
    method: Anonymization | None = None,
    quasi: Sequence[str] | None = None,
    verify: bool = True,
    numbered_up_to: int = 5_000_000,
    ledger: str | Path | Ledger | None = None,
    snapshot: str | None = None,
    progress: Progress = silent,
) -> Anonymized:
    """Return a file that keeps every model, changed as little as the method can.

    Parameters
    ----------
    data
        A dataset, or a frame whose columns have roles. Any: a frame may be of any library.
    models
        The promises, in any combination.
    method
        How to keep them; by default optimal generalisation without suppression.
    quasi
        The columns an intruder knows; by default those with that role.
    verify
        Check every model once more on the result, by a new count in the engine.
    numbered_up_to
        Files of up to this many records keep their row numbers, so that `frame` has the input's
        order and risk measures can pair records before and after.
    ledger
        The memory of earlier releases: models then hold in the joint classes, of those who share
        their class in this file and in every earlier one.
    snapshot
        The name of this state of the records, for the ledger; a new one when they have changed.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> from discreet.data.hierarchy import Hierarchy
    >>> from discreet.microdata.models.k_anonymity import KAnonymity
    >>> people = read(
    ...     pd.DataFrame({"region": ["N1", "N1", "N2", "S1", "S1"], "ill": list("abcab")}),
    ...     roles={"region": "quasi", "ill": "confidential"},
    ...     hierarchies={"region": Hierarchy.from_levels({"N": ["N1", "N2"], "S": ["S1"]})},
    ... )
    >>> safe = anonymize(people, [KAnonymity(2)])
    >>> safe.levels, safe.suppressed
    ({'region': 1}, 0)
    >>> safe.frame["region"].tolist()
    ['N', 'N', 'N', 'S', 'S']
    """
    from discreet.microdata.methods.generalization import Generalization

    promises = (models,) if isinstance(models, Model) else tuple(models)
    require_models(promises)
    dataset, keys = decided_keys(as_dataset(data), quasi)
    way = Generalization() if method is None else method
    require_keys(dataset, way.covered(keys))
    if ledger is not None:
        with Memory(ledger, dataset, snapshot=snapshot) as memory:
            made = _remembered(dataset, promises, way, keys, memory, verify, progress)
            return dataclasses.replace(made, standing=standing_in(memory))
    return _anonymized(dataset, promises, way, keys, verify, numbered_up_to, progress)


def _remembered(
    dataset: Dataset,
    promises: tuple[Model, ...],
    way: Anonymization,
    keys: tuple[str, ...],
    memory: Memory,
    verify: bool,
    progress: Progress,
) -> Anonymized:
    """Anonymise so that every model holds in the joint classes with earlier files."""
    from discreet.microdata.methods.generalization import Generalization

    classes = earlier_classes(memory)
    if classes is None or not isinstance(way, Generalization):
        made = _anonymized(dataset, promises, way, keys, verify, dataset.count, progress)
        made.judge(memory)
        return made
    # The earlier class is one more key, which no search may generalise.
    held = with_earlier(dataset.numbered(), classes)
    joint = dataclasses.replace(way, highest={**way.highest, EARLIER: 0})
    outcome = joint.anonymize(held, promises, quasi=(*keys, EARLIER), progress=progress)
    left = outcome.dataset.select([n for n in outcome.dataset.columns if n != EARLIER])
    levels = {name: level for name, level in outcome.levels.items() if name != EARLIER}
    outcome = dataclasses.replace(outcome, dataset=left, levels=levels)
    made = _finished(dataset, promises, way, keys, outcome, verify)
    made.judge(memory)
    return made


def _anonymized(
    dataset: Dataset,
    promises: tuple[Model, ...],
    way: Anonymization,
    keys: tuple[str, ...],
    verify: bool,
    numbered_up_to: int,
    progress: Progress,
) -> Anonymized:
    """Anonymise without a memory."""
    held = dataset.numbered() if dataset.count <= numbered_up_to else dataset
    outcome = way.anonymize(held, promises, quasi=keys, progress=progress)
    return _finished(dataset, promises, way, keys, outcome, verify)


def _finished(
    dataset: Dataset,
    promises: tuple[Model, ...],
    way: Anonymization,
    keys: tuple[str, ...],
    outcome: Outcome,
    verify: bool,
) -> Anonymized:
    outcome = dataclasses.replace(outcome, dataset=outcome.dataset.canonical())
    # People are counted by their unit, which is then taken out with the other identifiers.
    owned = _without_identifiers(outcome.dataset, but=dataset.unit)
    checks = _verified(owned, dataset, promises, keys, outcome) if verify else ()
    released = _without_identifiers(outcome.dataset)
    released = released.replace(library=Library.for_release(released.library))
    return Anonymized(
        dataset,
        released,
        (),
        models=promises,
        method=way,
        quasi=keys,
        outcome=outcome,
        checks=checks,
    )


def require_models(models: Sequence[Model]) -> None:
    """Refuse a demand without a promise."""
    if not models:
        raise InputError(
            "no model is given",
            code="missing-model",
            hint="write models=[dc.KAnonymity(5)], or k-anonymity: 5 in a policy",
            parameter="models",
        )


def _without_identifiers(dataset: Dataset, *, but: str | None = None) -> Dataset:
    identifiers = set(dataset.schema.identifiers) - {but}
    if not identifiers:
        return dataset
    return dataset.select([name for name in dataset.columns if name not in identifiers])


def _verified(
    released: Dataset,
    original: Dataset,
    models: Sequence[Model],
    keys: Sequence[str],
    outcome: Outcome,
) -> tuple[ModelCheck, ...]:
    from discreet.microdata.verify import verified

    checks = tuple(
        check
        for chosen in outcome.key_sets or (tuple(keys),)
        for check in verified(
            released,
            original,
            models,
            chosen,
            wildcard=outcome.wildcard,
            starred=outcome.starred,
            maps=outcome.maps,
        )
    )
    failed = [check.model for check in checks if not check.holds]
    if failed:
        raise EngineError(
            f"the result was checked and does not keep {', '.join(failed)}; nothing is released",
            code="model-not-kept",
            hint="this is a mistake of discreet or the engine: please report it",
        )
    return checks
