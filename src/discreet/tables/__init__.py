"""Tables: tabulate, mark what is sensitive, protect, audit, release."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Table": "discreet.tables.table",
        "TableRelease": "discreet.tables.release",
        "audit_published": "discreet.tables.published",
        "joint_audit": "discreet.tables.joint_audit",
        "compare": "discreet.tables.comparison",
        "protect": "discreet.tables.protection",
        "tabulate": "discreet.tables.table",
    },
)
