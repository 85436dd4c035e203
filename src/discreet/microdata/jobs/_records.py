"""What jobs that write records share: the format of the file and how methods are given."""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any

from discreet.data.job import ReleaseJob
from discreet.microdata.masking import Masking
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset

__all__ = ["RecordsJob", "masking_methods", "require_all"]


@dataclasses.dataclass(frozen=True)
class RecordsJob(ReleaseJob):
    """A job that releases records as a file."""

    format: str | None = parameter(
        None,
        help="format of the released file; as it was read by default",
        choices=("csv", "parquet", "arrow"),
        kw_only=True,
    )


def masking_methods(help: str, *, spread: bool | None = None, default: Any = MISSING) -> Any:
    """Declare a parameter of masking methods. Any: as `registry.parameter`."""
    text = f"{help}: 'NAME=COLUMN,… parameter=value …', such as 'top-coding=salary value=90000'"
    return parameter(default, help=text, option="--method/-m", spread=spread)


def require_all(methods: tuple[Masking, ...], dataset: Dataset) -> None:
    """Check every method against the columns, and that every column that leaves was decided on."""
    from discreet.microdata.decided import require_masked

    for method in methods:
        method.require(dataset)
    require_masked(dataset, methods)
