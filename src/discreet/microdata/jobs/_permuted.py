"""What jobs on permuted columns share."""

from __future__ import annotations

__all__ = ["stated_roles"]


def stated_roles(
    sensitive: str, quasi: tuple[str, ...], identifiers: tuple[str, ...] = ()
) -> dict[str, str]:
    """Return roles that columns have by being named; none where roles are left to be guessed.

    >>> stated_roles("pay", ("age",))
    {'age': 'quasi', 'pay': 'confidential'}
    >>> stated_roles("pay", ())
    {}
    """
    if not quasi and not identifiers:
        return {}
    roles = dict.fromkeys(identifiers, "identifier") | dict.fromkeys(quasi, "quasi")
    return roles | {sensitive: "confidential"}
