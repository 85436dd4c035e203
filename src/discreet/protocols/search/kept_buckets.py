"""The buckets of Goopir in a file: when the vocabulary changes they may grow, never be others."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from discreet.data.atomic import atomic_file
from discreet.errors import InputError
from discreet.protocols.search._base import Vocabulary

__all__ = ["KeptBuckets"]

#: Terms that are searched for together.
Bucket = Sequence[str]


@dataclasses.dataclass(frozen=True)
class KeptBuckets:
    """Buckets that outlive their vocabulary: two different ones of a term would have little else in common.

    Examples
    --------
    >>> import tempfile
    >>> kept = KeptBuckets(Path(tempfile.mkdtemp()) / "words.csv.buckets")
    >>> kept.write([["flu", "gout"]])
    >>> kept.read()
    [['flu', 'gout']]
    >>> kept.completed(Vocabulary.of({"flu": 2, "acne": 1})).terms
    ('flu', 'acne', 'gout')
    """

    file: Path

    def completed(self, words: Vocabulary) -> Vocabulary:
        """Return a vocabulary with the terms that it lists no longer: they still hide the others."""
        gone = [term for bucket in self.read() for term in bucket if term not in words.places]
        if not gone:
            return words
        listed = dict(zip(words.terms, words.weights.tolist(), strict=True))
        return Vocabulary.of({**listed, **dict.fromkeys(gone, float(words.weights.min()))})

    def write(self, buckets: Sequence[Bucket]) -> None:
        """Keep buckets from now on."""
        if buckets == self.read():
            return
        try:
            with atomic_file(self.file) as file:
                file.write_text(json.dumps(buckets, ensure_ascii=False), encoding="utf-8")
        except OSError as error:
            raise InputError(
                "the buckets cannot be kept, and others would give searches away",
                code="kept-buckets",
                hint="copy the vocabulary to a folder where you may write",
                file=self.file,
            ) from error

    def read(self) -> list[list[str]]:
        """Return the buckets; none where none were kept."""
        try:
            found = json.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except (OSError, ValueError):
            found = None
        if (
            not isinstance(found, list)
            or not all(
                isinstance(bucket, list) and all(isinstance(term, str) for term in bucket)
                for bucket in found
            )
            or len({term for bucket in found for term in bucket}) != sum(map(len, found))
        ):
            raise InputError(
                "the file with the buckets cannot be read",
                code="kept-buckets",
                hint="restore it; other buckets would give away what was searched for before",
                file=self.file,
            )
        return found
