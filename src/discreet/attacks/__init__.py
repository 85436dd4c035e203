"""Attacks: what an attacker tries, each in one file, against a target it receives."""

from discreet.attacks._base import Attack
from discreet.registry import Family, lazy

FAMILY = Family("attack", Attack, __name__)

__getattr__, __all__ = lazy(
    __name__,
    {
        "AttackReport": "discreet.attacks._base",
        "RawDatabase": "discreet.attacks._raw",
        "Victim": "discreet.attacks._base",
        "attacks_on": "discreet.attacks._base",
    },
)
