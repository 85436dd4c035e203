"""The file before and after, record by record: what risk and utility are measured on.

Which released record comes from which original one is known in the house and nowhere else. The
intruder of the risk measures does not use it; it is used to judge whether the intruder was right.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.data.schema import Role, Schema, Type
from discreet.errors import InputError
from discreet.microdata.columns import codes, combined, is_number, numbers
from discreet.microdata.population import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["Pair"]

Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
_ROW = "__row"


@dataclasses.dataclass(frozen=True, eq=False)
class Pair:
    """An original file and what is released of it.

    Parameters
    ----------
    original, released
        The files; a released record may lack columns, and original records may be missing.
    origin
        For each released record the place of its original.
    keys
        The columns an intruder knows of a respondent.
    population
        Size of the population the original is a sample of, where it is one.
    everyone
        The population itself, where there is a file of it with the same keys.
    holdout
        Records like the original ones that nobody has used: what an intruder says of them, too,
        follows from what everybody may know.
    paired
        Whether each released record comes from one original; synthetic ones come from none.

    Examples
    --------
    >>> import pandas as pd
    >>> pair = Pair.of(
    ...     pd.DataFrame({"age": [20, 30], "pay": [1, 2]}),
    ...     pd.DataFrame({"age": [20, 20]}),
    ...     keys=["age"],
    ... )
    >>> pair.after("age").to_pylist(), pair.origin.tolist()
    ([20, 20], [0, 1])
    """

    original: Dataset
    released: Dataset
    origin: Places
    keys: tuple[str, ...]
    population: float | None = None
    everyone: Dataset | None = None
    holdout: Dataset | None = None
    paired: bool = True

    @classmethod
    def of(
        cls,
        original: Any,
        released: Any = None,
        *,
        keys: Sequence[str] | None = None,
        population: Any = None,
        holdout: Any = None,
        paired: bool | None = None,
    ) -> Pair:
        """Pair the records of two files; without a second one the original is released as it is.

        The population may be its size, or a file of it with the keys as they were before. Records
        correspond unless `paired` says otherwise or the release is synthetic. Any: datasets,
        releases or frames.
        """
        from discreet.data.dataset import as_dataset

        before = as_dataset(original)
        after = before if released is None else as_dataset(released)
        if paired is None:
            paired = bool(getattr(released, "corresponds", True))
        origin = _origin(before, after) if paired else np.arange(len(after))
        unused = None if holdout is None else as_dataset(holdout)
        if unused is not None:
            unused.relation.require(*(c for c in before.columns if c in after.columns))
        given = (keys,) if isinstance(keys, str) else tuple(keys or ())
        for name in given:
            before.schema[name]
        known = given or _known(before, after)
        if population is None or isinstance(population, int | float):
            return cls(before, after, origin, known, population, holdout=unused, paired=paired)
        everyone = as_dataset(population)
        everyone.relation.require(*known)
        return cls(before, after, origin, known, float(len(everyone)), everyone, unused, paired)

    @property
    def schema(self) -> Schema:
        """What the columns of the original are."""
        return self.original.schema

    @property
    def confidential(self) -> tuple[str, ...]:
        """The confidential columns that are released."""
        return tuple(c for c in self.schema.confidential if c in self.released.columns)

    @property
    def shared(self) -> tuple[str, ...]:
        """The columns in both files, identifiers left out."""
        hidden = set(self.schema.identifiers)
        return tuple(
            c for c in self.original.columns if c in self.released.columns and c not in hidden
        )

    @functools.cached_property
    def _before(self) -> dict[str, Any]:
        return {}

    @functools.cached_property
    def _after(self) -> dict[str, Any]:
        return {}

    def before(self, name: str) -> pa.Array:
        """Return a column of the original."""
        if name not in self._before:
            self._before[name] = _column(self.original, name)
        return self._before[name]

    def after(self, name: str) -> pa.Array:
        """Return a column of the release."""
        if name not in self._after:
            self._after[name] = _column(self.released, name)
        return self._after[name]

    def unused(self, name: str) -> pa.Array:
        """Return a column of the records that nobody has used."""
        assert self.holdout is not None
        return _column(self.holdout, name)

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers before and after that are not codes of categories."""
        column = self.schema[name]
        if column.type is Type.NOMINAL and column.role is not Role.IDENTIFIER:
            return False
        return is_number(self.before(name).type) and is_number(self.after(name).type)

    def numbers(self, name: str) -> tuple[Numbers, Numbers]:
        """Return a numeric column before, in the order of the release, and after."""
        before = self.own(numbers(self.before(name), name=name))
        return before, numbers(self.after(name), name=name)

    def own(self, values: Any) -> Any:
        """Return original values in the order of the release; as they are without any order.

        Any: an array of any type.
        """
        return values[self.origin] if self.paired else values

    @functools.cached_property
    def size(self) -> int:
        """Number of released records."""
        return int(self.origin.size)

    @functools.cached_property
    def weights(self) -> Numbers | None:
        """Sampling weights of the released records, where the schema names them."""
        if self.schema.weight is not None and self.schema.weight in self.original.columns:
            found = numbers(self.before(self.schema.weight), name=self.schema.weight)[self.origin]
            if self.units is None:
                return found
            # Everybody stands for as many people as one of their records says, not all together.
            return np.asarray(found / np.bincount(self.units)[self.units])
        if self.population is not None:
            return np.full(self.size, self.population / max(self.size, 1))
        return None

    @functools.cached_property
    def units(self) -> Places | None:
        """The unit that owns each released record, where somebody owns several."""
        unit = self.schema.unit
        if unit is None or unit not in self.original.columns:
            return None
        owners = combined([codes(self.before(unit))[0]], len(self.before(unit)))[self.origin]
        return None if np.unique(owners).size == owners.size else owners

    def people_in(self, group: Places) -> Places:
        """Return the number of people in each of the groups 0, 1, … of the released records."""
        if self.units is None:
            return np.bincount(group)
        return np.bincount(np.unique(np.stack((group, self.units)), axis=1)[0])

    @functools.cached_property
    def people(self) -> Numbers | None:
        """How many people of the population are like each released record, if that is known.

        Counted in the file of the population, its keys recoded as those of the release were, or
        estimated by the weights.
        """
        if self.everyone is None:
            if self.weights is None:
                return None
            estimated = np.bincount(self.class_of, self.weights)[self.class_of]
            return estimated.astype(np.float64)
        names = self.released_keys
        return counted(
            self.everyone,
            {name: self.before(name) for name in names},
            {name: self.after(name) for name in names},
            self.origin,
            self.class_size,
        )

    @functools.cached_property
    def coded_keys(self) -> list[Places]:
        """The released keys as codes, −1 where missing."""
        return [codes(self.after(name))[0] for name in self.released_keys]

    @property
    def released_keys(self) -> tuple[str, ...]:
        """The keys that are in the release."""
        return tuple(name for name in self.keys if name in self.released.columns)

    @functools.cached_property
    def class_of(self) -> Places:
        """The class of each released record: those that agree on all keys; missing is a value."""
        return combined(self.coded_keys, self.size)

    @functools.cached_property
    def class_size(self) -> Places:
        """The number of people in each released record's class: distinct units, where declared."""
        return self.people_in(self.class_of)[self.class_of]

    def comparable(self, name: str) -> tuple[Places, Places, int]:
        """Return a column before and after as codes of one list, −1 where missing, and its length.

        Where categories were recoded the intruder is given the recoding, which is published: an
        original value is compared as what most records with that value became. Numbers that became
        other numbers are compared as they are.
        """
        import pyarrow as pa

        before, after = self.before(name).cast(pa.string()), self.after(name).cast(pa.string())
        places, words = codes(pa.concat_arrays([before, after]))
        first, second = places[: len(before)], places[len(before) :]
        width = len(words)
        fresh = np.setdiff1d(second[second >= 0], first)
        if fresh.size and self.paired and not self.is_numeric(name):
            own = first[self.origin]
            known = (own >= 0) & (second >= 0)
            pairs, counts = np.unique(own[known] * width + second[known], return_counts=True)
            source, target = np.divmod(pairs, max(width, 1))
            order = np.lexsort((target, counts, source))
            table = np.arange(width + 1)
            table[-1] = -1
            table[source[order]] = target[order]  # the last, most frequent one stays
            first = table[first]
        return first, second, width


def _known(before: Dataset, after: Dataset) -> tuple[str, ...]:
    """Return the quasi-identifiers; without any, every column but names and known secrets.

    That a column is confidential may be a guess, and a guess must not make a file look safe: only
    what the curator called confidential is taken to be unknown to the intruder.
    """
    if before.schema.quasi:
        return before.schema.quasi
    hidden = {*before.schema.identifiers, before.schema.weight}
    shared = [c for c in before.columns if c in after.columns and c not in hidden]
    secret = {c for c in before.schema.confidential if before.schema[c].reason == "given"}
    found = [c for c in shared if c not in secret] or shared
    if not found:
        raise InputError(
            "there is no column an intruder could know",
            code="no-quasi-identifiers",
            hint="read the data with roles={'age': 'quasi', …}, or pass keys=[…]",
        )
    return tuple(found)


def _origin(before: Dataset, after: Dataset) -> Places:
    if _ROW in after.relation.columns:
        rows = after.engine.fetch(after.engine.project(after.relation, [_ROW]))
        return np.sort(rows.column(0).to_numpy()).astype(np.int64)
    if len(before) != len(after):
        raise InputError(
            f"the files have {len(before):,} and {len(after):,} records, and nothing says which "
            "belong together",
            code="unpaired-records",
            hint="pass the release itself instead of a frame made from it",
        )
    return np.arange(len(after))


def _column(dataset: Dataset, name: str) -> pa.Array:
    import pyarrow as pa

    dataset.schema[name]
    found = dataset.arrow([name]).column(0).combine_chunks()
    if pa.types.is_dictionary(found.type):
        found = found.cast(found.type.value_type)
    return found
