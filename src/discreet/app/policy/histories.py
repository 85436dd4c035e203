"""One source, one history: what several gateways of a policy must have in common."""

from __future__ import annotations

from pathlib import Path

from discreet.app.policy.model import Policy
from discreet.errors import InputError

__all__ = ["require_one_gateway", "require_one_history"]


def require_one_history(policy: Policy, path: str | Path) -> None:
    """Refuse gateways that would answer about the same records and not know of each other."""
    for parameter, given in (("ledger", "ledger"), ("relation", "name")):
        found = {
            name: getattr(service, parameter, None) for name, service in policy.gateways.items()
        }
        if len(set(found.values())) > 1:
            first, other = next(
                (one, two) for one in found for two in found if found[one] != found[two]
            )
            raise InputError(
                f"the gateways {first!r} and {other!r} answer about the same records under another "
                f"{given}, so that neither knows what the other answered",
                code="two-histories",
                hint=f"give both the same `{parameter}:`",
                file=path,
            )


def require_one_gateway(policy: Policy, path: str | Path) -> None:
    """Refuse to serve two gateways of one relation: the later would take the earlier one's place."""
    require_one_history(policy, path)
    if len(policy.gateways) > 1:
        raise InputError(
            "two gateways would answer about the same relation: " + ", ".join(policy.gateways),
            code="several-gateways",
            hint="keep one, and put the guards of users, roles and columns under its `policies:`",
            file=path,
        )
