"""Files of records and what was released before: joint classes, and sums that classes tell.

An intruder who knows somebody's class in every file looks among those who share all of them. So the
models must hold in the joint classes: same class in the new file and in every earlier one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.atoms import atoms_of
from discreet.audit.joint import JointSets
from discreet.data.dataset import Dataset
from discreet.data.facts import ClassFacts, Facts, LinearFacts
from discreet.data.hierarchy import Hierarchy
from discreet.errors import RefusedError
from discreet.ledger.memory import Memory
from discreet.microdata.columns import is_number

__all__ = [
    "EARLIER",
    "class_sums",
    "earlier_classes",
    "file_facts",
    "require_sums_safe",
    "with_earlier",
]

Ints = npt.NDArray[np.int64]

#: The column that says in which classes of earlier files a record was; never released.
EARLIER = "__earlier_class"


def earlier_classes(memory: Memory) -> Ints | None:
    """Return for each record, in the dataset's own order, its joint class in all earlier files."""
    known = memory.classes()
    if not known:
        return None
    joint = atoms_of([memory.now(earlier, fact.members) for earlier, fact in known])
    found = np.zeros(len(joint), dtype=np.int64)
    found[memory.roster.order] = joint
    return found


def with_earlier(dataset: Dataset, classes: Ints) -> Dataset:
    """Return the records with their earlier classes as one more column."""
    import pyarrow as pa

    words = pa.array([f"c{number}" for number in classes.tolist()])
    held = dataset.with_columns({EARLIER: words})
    codes = sorted(set(words.to_pylist()))
    tree = Hierarchy.flat(codes, total="*")
    return held.replace(hierarchies={EARLIER: (tree,)}, roles={EARLIER: "quasi"})


def file_facts(
    original: Dataset,
    released: Any,
    origin: Ints,
    keys: Sequence[str],
    models: Sequence[Mapping[str, Any]],
    memory: Memory,
    *,
    untouched: Sequence[str],
    k: int,
) -> list[Facts]:
    """Return what a file of records tells: its classes, and the sums of numbers that it leaves as is.

    `released` has the records, `origin` the place of each in the original. Any: an Arrow table.
    """
    classes = np.full(len(original), -1, dtype=np.int64)
    parts = []
    for name in keys:
        coded = released.column(name).combine_chunks().dictionary_encode()
        parts.append(coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64))
    classes[origin] = atoms_of(parts) if parts else np.arange(len(origin))
    members = classes[memory.roster.order]
    confidential = [n for n in original.schema.confidential if n in released.column_names]
    found: list[Facts] = [
        ClassFacts(tuple(keys), tuple(confidential), members, tuple(dict(m) for m in models))
    ]
    told = [n for n in confidential if n in untouched and is_number(released.column(n).type)]
    return [
        *found,
        *(class_sums(name, classes, released, origin, memory, k=k) for name in told),
    ]


def class_sums(
    name: str, classes: Ints, released: Any, origin: Ints, memory: Memory, *, k: int
) -> LinearFacts:
    """Return the sum of a number in each class of a file. Any: an Arrow table."""
    members = classes[memory.roster.order]
    return dataclasses.replace(
        _sums(name, classes, released, origin, members, k),
        identities=memory.roster.amounts([name]),
        near=memory.roster.nearly([name]),
        unit=memory.dataset.unit,
    )


def _sums(
    name: str, classes: Ints, released: Any, origin: Ints, members: Ints, k: int
) -> LinearFacts:
    """Return the sum of a number in each class of a file, as a table by class."""
    amounts = np.array(
        [0.0 if value is None else float(value) for value in released.column(name).to_pylist()]
    )
    count = int(classes.max(initial=-1)) + 1
    told = np.bincount(classes[origin], weights=amounts, minlength=count).astype(np.float64)
    # One attribute, with a code for each class below a total that is not told.
    pairs = (("Total", ""), *((f"c{n}", "Total") for n in range(count)))
    codes = np.arange(1, count + 1, dtype=np.int64)[:, None]
    return LinearFacts(
        statistic="sum",
        measure=name,
        by=("class",),
        hierarchies=((pairs,),),
        codes=codes,
        lower=told,
        upper=told.copy(),
        k=k,
        members=members,
        combinations=codes,
    )


def require_sums_safe(facts: Sequence[Facts], memory: Memory) -> None:
    """Refuse a file whose classes, together with earlier sums, tell of fewer than k people.

    Records that were left out are told by a table's total less the sums of the classes.
    """
    for fact in facts:
        if not isinstance(fact, LinearFacts):
            continue
        joint = JointSets(memory, fact)
        if joint.is_alone:
            continue
        refused, beside = joint.isolating(np.asarray(fact.exact))
        if refused.any():
            raise RefusedError(
                f"together with {beside} the sums of {fact.measure!r} in the file tell of fewer "
                f"than {fact.k} people",
                code="unsafe-together",
                hint="suppress no record or more of them, mask the column, or leave it out",
                column=fact.measure,
            )
