"""A table for private retrieval, for its publisher: build it, open it, update it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from discreet.data.atomic import atomic_file
from discreet.data.dataset import Dataset, as_dataset
from discreet.protocols.retrieval.building import build, chosen_columns, require_publishable
from discreet.protocols.retrieval.published import Published
from discreet.protocols.retrieval.signing import Publisher
from discreet.protocols.retrieval.trusting import (
    KEY,
    PUBLIC,
    PUBLISHED,
    publisher_of,
    require_kept_back,
)
from discreet.protocols.retrieval.updating import update

__all__ = ["RetrievalTable"]


@dataclasses.dataclass(frozen=True, eq=False)
class RetrievalTable(Published):
    """One version of a published table, in files that servers map into memory.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> drugs = pd.DataFrame(
    ...     {"code": ["N02BE01", "C07AB02"], "name": ["paracetamol", "metoprolol"]}
    ... )
    >>> table = RetrievalTable.build(
    ...     drugs,
    ...     key="code",
    ...     folder=tempfile.mkdtemp() + "/drugs",
    ...     publisher=Publisher(bytes(32)),
    ...     publishable=True,
    ... )
    >>> table.statement.version, table.statement.rows, table.lookup("main", "N02BE01")
    (1, 2, ['paracetamol'])
    """

    @classmethod
    def build(
        cls,
        data: Any,
        *,
        key: str,
        folder: str | Path | None = None,
        publisher: Publisher | str | Path | None = None,
        columns: Sequence[str] | None = None,
        secondary: Mapping[str, int] | None = None,
        schemes: Sequence[str] = ("dpf",),
        publishable: bool = False,
        name: str | None = None,
        width: int | None = None,
        places: int | None = None,
        layout: Literal["balanced", "small-hint", "small-query"] = "balanced",
        expires: float | None = None,
    ) -> RetrievalTable:
        """Publish records of a dataset under a new version.

        Parameters
        ----------
        data
            A dataset, or anything `discreet.read` takes. Any: every library has its own frame.
        key
            The column that rows are looked up by; its values are unique.
        folder
            Where versions are written, each in a folder of its own; `published/NAME` by default.
        publisher
            Who signs: a key file, as `discreet table new-key` writes. By default `publisher.key`, which
            is made the first time.
        columns
            What is published besides the key; all columns by default.
        secondary
            Further columns to look up by, and how many rows one value may have at most.
        schemes
            For which schemes: simple-pir needs a matrix and a hint of its own.
        publishable
            Vouch that confidential columns and those without a role may be published.
        name
            Name of the table; the dataset's by default.
        width
            Bytes of a record; what the longest row needs by default.
        places
            How many rows may change before the table is built again.
        layout
            For simple-pir, which of hint and question is kept small.
        expires
            Seconds after which servers drop the version once there is a newer one.
        """
        dataset = data if isinstance(data, Dataset) else as_dataset(data)
        place = Path(PUBLISHED) / (name or dataset.name) if folder is None else Path(folder)
        further = dict(secondary or {})
        # Before a key is made: a table that is refused leaves nothing behind.
        if isinstance(publisher, str | Path):
            require_kept_back(publisher, place)
        names = chosen_columns(dataset, key, columns, further)
        require_publishable(dataset, names, publishable=publishable)
        made = build(
            dataset,
            key=key,
            folder=place,
            publisher=_signer(publisher_of(KEY) if publisher is None else publisher),
            columns=columns,
            secondary=further,
            schemes=tuple(schemes),
            name=name,
            width=width,
            places=places,
            layout=layout,
            expires=expires,
        )
        with atomic_file(place / PUBLIC) as file:  # a link there is replaced, never followed
            file.write_text(made.statement.publisher + "\n", encoding="ascii")
        return cls(made.folder, made.statement)

    def update(
        self,
        changed: Any = None,
        *,
        deleted: Sequence[Any] = (),
        publisher: Publisher | str | Path,
        publishable: bool = False,
    ) -> RetrievalTable:
        """Publish the next version: changed and new rows, and keys that are gone.

        The changed rows are judged as `build` judges records: vouch with `publishable` for confidential
        columns and those without a role. Any: a frame or dataset with the columns of the table, and keys.
        """
        made = update(
            self, changed, deleted=deleted, publisher=_signer(publisher), publishable=publishable
        )
        return type(self)(made.folder, made.statement)


def _signer(publisher: Publisher | str | Path) -> Publisher:
    return publisher if isinstance(publisher, Publisher) else Publisher.read(publisher)
