"""Before records are released: the role of every column that leaves was said, and holds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from discreet.data.decisions import require_decided, require_harmless
from discreet.data.schema import Role
from discreet.errors import InputError
from discreet.microdata.frequency_set import quasi_identifiers, require_countable
from discreet.microdata.telling import require_untold

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.masking._base import Masking

__all__ = ["decided_keys", "require_keys", "require_masked", "require_release"]


def require_release(
    dataset: Dataset,
    *,
    changed: Collection[str] = (),
    kept: Collection[str] = (),
    replaced: Collection[str] = (),
) -> None:
    """Refuse a release with columns that nobody decided on, or whose values name people.

    `changed` are the columns whose values do not leave as they are; `kept` those that do not leave,
    `replaced` those of which no value leaves anywhere.
    """
    hidden = {*dataset.schema.identifiers, *kept}
    leaving = [name for name in dataset.columns if name not in hidden]
    if dataset.unit in leaving and dataset.unit not in changed:
        raise _unit_leaves(dataset.unit)
    require_decided(dataset, leaving)
    require_countable(dataset, leaving)
    require_harmless(
        dataset,
        [name for name in leaving if name not in changed],
        changed=[name for name in leaving if name in changed and name not in replaced],
    )


def require_keys(dataset: Dataset, covered: Sequence[str]) -> None:
    """Refuse a release by keys as `require_release` does, and where another column tells a key."""
    require_release(dataset, changed=covered)
    require_untold(dataset, covered)


def require_masked(dataset: Dataset, methods: Sequence[Masking]) -> None:
    """Refuse a release of masked records with columns that nobody decided on, or that name people.

    A column that leaves as it is and tells a masked one is refused as well: a tax beside a salary
    with noise.
    """
    changed = {name for method in methods for name in method.changes}
    replaced = {name for method in methods if method.replaces for name in method.changes}
    require_release(dataset, changed=changed, replaced=replaced)
    require_untold(dataset, [name for name in dataset.columns if name in changed])


def decided_keys(dataset: Dataset, quasi: Sequence[str] | None) -> tuple[Dataset, tuple[str, ...]]:
    """Return the quasi-identifiers, and the dataset in which those given have that role.

    Naming a column here decides on it; saying something else than its role is an error.
    """
    keys = quasi_identifiers(dataset, quasi)
    if dataset.unit in keys:  # whoever is one unit would be one class
        raise _unit_leaves(dataset.unit)
    if quasi is None:
        return dataset, keys
    roles = {column.name: column.role for column in dataset.schema.columns if column.decided}
    named = [name for name in keys if roles.get(name, Role.QUASI) is not Role.QUASI]
    left = [name for name, role in roles.items() if role is Role.QUASI and name not in keys]
    for name in (*named, *left):
        raise InputError(
            f"column {name!r} has the role {roles[name]} and is "
            f"{'named' if name in keys else 'not named'} among the quasi-identifiers",
            code="contradicting-roles",
            hint="say it once: leave out quasi=, or correct the role",
            column=name,
        )
    return dataset.replace(roles=dict.fromkeys(keys, Role.QUASI)), keys


def _unit_leaves(unit: str | None) -> InputError:
    return InputError(
        f"column {unit!r} says whose a record is, and a release would hold it",
        code="contradicting-roles",
        hint=f"give it the role identifier: roles={{{unit!r}: 'identifier'}}",
        column=unit,
    )
