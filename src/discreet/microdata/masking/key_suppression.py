"""Local suppression as a step of masking: single key values removed until records look alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from discreet.data.schema import Schema
from discreet.errors import InputError
from discreet.microdata.masking._base import ColumnMasking
from discreet.microdata.models._base import require_enough
from discreet.microdata.models.k_anonymity import KAnonymity
from discreet.microdata.search.local_suppression import Preferences, suppress_keys
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KeySuppression"]


@dataclasses.dataclass(frozen=True)
class KeySuppression(ColumnMasking):
    """Remove the fewest or cheapest values of some keys so that every record looks like k records.

    The step does what the method `LocalSuppression` of `anonymize` does, on the columns named here,
    whatever came before it in a pipeline. A removed value is missing; missing values match every
    value (`wildcard`) or are a value of their own (`category`).

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table({"sex": ["f", "f", "f", "m"], "age": [20, 20, 30, 20]})
    >>> method = KeySuppression(("sex", "age"), k=2, importance=("sex",))
    >>> found = method.apply(rows, schema=None, rng=Randomness.seeded(1))
    >>> found["sex"].null_count + found["age"].null_count
    2
    """

    name: ClassVar[str] = "local-suppression"
    reference: ClassVar[str] = (
        "Hundepool and others: Statistical disclosure control, Wiley 2012, section 3.5"
    )
    perturbative: ClassVar[bool] = False
    keeps_missing: ClassVar[bool] = False

    k: int = parameter(3, help="fewest records that look alike", low=2)
    missing: str = parameter(
        "wildcard",
        help="whether a missing key matches every value or is a value of its own",
        choices=("wildcard", "category"),
    )
    importance: tuple[str, ...] = parameter(
        (), help="keys from the one to keep most to the one to give up first"
    )
    costs: Mapping[str, float] = parameter({}, help="cost of removing a value of a key, else 1")
    key_sets: tuple[tuple[str, ...], ...] = parameter(
        (), help="sets of keys that an intruder may know together; by default all of them"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        unknown = sorted(self._wish().named - set(self.columns))
        if unknown:
            raise InputError(
                f"{self.name} does not suppress column {unknown[0]!r}",
                code="unknown-column",
                hint="name it among the columns, or leave it out of importance, costs and key_sets",
                column=unknown[0],
            )

    def _wish(self) -> Preferences:
        return Preferences(self.missing, self.importance, self.costs, self.key_sets)

    def stronger(self) -> KeySuppression | None:
        """Return the method with k one step further."""
        if self.k > 1000:
            return None
        return dataclasses.replace(self, k=self.k + max(1, self.k // 2))

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the keys with values removed."""
        require_enough(rows.num_rows, [KAnonymity(self.k)])
        keys = rows.select(list(self.columns))
        changed = suppress_keys(keys, self.k, self._wish()).changed(keys)
        return {
            name: changed.get(name, keys.column(name).combine_chunks()) for name in self.columns
        }
