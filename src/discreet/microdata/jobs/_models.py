"""How jobs are given privacy models, and what they require of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.microdata.models import Model
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.methods import Anonymization

__all__ = ["privacy_models", "require_fitting", "require_models"]


def privacy_models() -> Any:
    """Declare a parameter of privacy models. Any: as `registry.parameter`."""
    return parameter(
        help="promises to keep: k-anonymity=5, l-diversity=diagnosis,3 …", option="--model"
    )


def require_models(models: tuple[Model, ...]) -> None:
    """Refuse a demand without a promise."""
    from discreet.microdata.anonymization import require_models as require

    require(models)


def require_fitting(
    dataset: Dataset,
    quasi: tuple[str, ...],
    models: tuple[Model, ...],
    method: Anonymization | None,
) -> None:
    """Raise an InputError if a column is missing, undecided, or has two roles."""
    from discreet.microdata.decided import decided_keys, require_keys
    from discreet.microdata.frequency_set import require_apart

    dataset, keys = decided_keys(dataset, quasi or None)
    require_apart(dataset, keys, models)
    require_keys(dataset, keys if method is None else method.covered(keys))
