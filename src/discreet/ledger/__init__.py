"""The ledger: everything released and spent, recorded durably before it leaves."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Charge": "discreet.ledger.entry",
        "Draft": "discreet.ledger.entry",
        "Entry": "discreet.ledger.entry",
        "Recording": "discreet.ledger.recording",
        "Ledger": "discreet.ledger.store",
        "Verification": "discreet.ledger.entry",
        "open_ledger": "discreet.ledger.opening",
    },
)
