"""Local suppression as a step of masking: single key values removed until records look alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from discreet.data.schema import Schema
from discreet.microdata.masking._base import ColumnMasking
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

    def stronger(self) -> KeySuppression | None:
        """Return the method with k one step further."""
        if self.k > 1000:
            return None
        return dataclasses.replace(self, k=self.k + max(1, self.k // 2))

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the keys with values removed."""
        from discreet.data.dataset import read
        from discreet.microdata.methods.local_suppression import LocalSuppression
        from discreet.microdata.models.k_anonymity import KAnonymity

        keys = list(self.columns)
        people = read(rows.select(keys), roles=dict.fromkeys(keys, "quasi"))
        method = LocalSuppression(
            missing=self.missing,
            importance=self.importance,
            costs=self.costs,
            key_sets=self.key_sets,
        )
        done = method.anonymize(people, [KAnonymity(self.k)], quasi=keys).dataset.arrow(keys)
        return {name: done.column(name).combine_chunks() for name in keys}
