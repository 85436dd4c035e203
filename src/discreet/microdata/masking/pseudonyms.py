"""Pseudonyms: identifiers replaced by keyed hashes."""

from __future__ import annotations

import dataclasses
import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from discreet.data.schema import Role, Schema
from discreet.errors import InputError
from discreet.microdata.columns import codes
from discreet.microdata.masking._base import ColumnMasking
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["Pseudonyms"]

_SHORTEST_KEY = 16


@dataclasses.dataclass(frozen=True)
class Pseudonyms(ColumnMasking):
    """Replace identifiers by keyed hashes (HMAC-SHA-256), so that records can still be linked.

    The same value gets the same pseudonym under the same key, in every column and every release;
    without the key pseudonyms can be neither computed nor undone. The key is read from a file of
    at least 16 bytes that stays in the house; without one a key is drawn that nobody keeps, and
    pseudonyms link only within this release. Identifiers treated so stay in the release. Missing
    values stay missing.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table({"person": ["ana", "ben", "ana"]})
    >>> masked = Pseudonyms("person").apply(rows, schema=None, rng=Randomness.seeded(1))
    >>> a, b, c = masked["person"].to_pylist()
    >>> a == c, a == b, len(a)
    (True, False, 32)
    """

    name: ClassVar[str] = "pseudonyms"
    reference: ClassVar[str] = "Krawczyk, Bellare and Canetti, RFC 2104, 1997"
    random: ClassVar[bool] = True
    replaces: ClassVar[bool] = True

    key_file: str | None = parameter(None, help="file with the secret key", file="secret")
    length: int = parameter(32, help="hexadecimal digits of a pseudonym", low=16, high=64)

    @classmethod
    def examples(cls, **offered: Any) -> tuple[Self, ...]:
        """Return the method on identifiers, which are what it is for."""
        return (cls(offered["identifiers"]),)

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the columns as pseudonyms."""
        import pyarrow as pa

        key = self._key(rng)
        masked = {}
        for name in self.columns:
            places, values = codes(rows.column(name))
            digests = pa.array([self._pseudonym(key, value) for value in values.to_pylist()])
            digests = digests.cast(pa.string())
            masked[name] = digests.take(pa.array(places, mask=places < 0))
        return masked

    def mask(self, dataset: Dataset, *, rng: Randomness, progress: Progress = silent) -> Dataset:
        """Return the dataset with pseudonyms, no longer identifiers."""
        masked = super().mask(dataset, rng=rng, progress=progress)
        return masked.replace(roles=dict.fromkeys(self.columns, Role.OTHER))

    def settings(self) -> dict[str, Any]:
        """Return what evidence records: where the key comes from, and nothing that leads to it."""
        source = "drawn and forgotten" if self.key_file is None else "kept in the house"
        return {
            "name": self.name,
            "columns": list(self.columns),
            "length": self.length,
            "key": source,
        }

    def _pseudonym(self, key: bytes, value: Any) -> str:
        # Any: identifiers may be of any type; they are hashed as they are written.
        return hmac.digest(key, str(value).encode(), "sha256").hex()[: self.length]

    def _key(self, rng: Randomness) -> bytes:
        if self.key_file is None:
            return rng.bytes(32)
        try:
            key = Path(self.key_file).read_bytes().strip()
        except OSError as error:
            raise InputError(
                f"the key file cannot be read: {error.strerror}",
                code="unreadable-file",
                file=self.key_file,
                parameter="key_file",
            ) from None
        if len(key) < _SHORTEST_KEY:
            raise InputError(
                f"the key has {len(key)} bytes",
                code="weak-key",
                hint=f"make one of at least {_SHORTEST_KEY} random bytes, such as with "
                "`openssl rand -hex 32`",
                file=self.key_file,
                parameter="key_file",
            )
        return key
