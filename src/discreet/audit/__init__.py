"""What an attacker can infer from releases: rules that say what is sensitive, and intervals."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__, {"Audit": "discreet.audit.intervals", "audit_table": "discreet.audit.intervals"}
)
