"""Differential privacy through OpenDP, accountants, and local collection."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Accountant": "discreet.dp.accountant",
        "Grant": "discreet.dp.grant",
        "gaussian_event": "discreet.dp.accountant",
        "normal_event": "discreet.dp.accountant",
        "pure_event": "discreet.dp.accountant",
    },
)
