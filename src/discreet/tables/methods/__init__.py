"""Ways to protect a table, one file each."""

from discreet.registry import Family
from discreet.tables.methods._base import Protected, TableMethod

__all__ = ["FAMILY", "Protected", "TableMethod"]

FAMILY = Family("table-method", TableMethod, __name__)
