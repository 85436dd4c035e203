"""The nouns every job shares: schema, hierarchy, dataset, table, release; and the engines."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Dataset": "discreet.data.dataset",
        "Dimension": "discreet.data.table",
        "Evidence": "discreet.data.release",
        "Hierarchy": "discreet.data.hierarchy",
        "LinkedTables": "discreet.data.linked",
        "Release": "discreet.data.release",
        "Schema": "discreet.data.schema",
        "Source": "discreet.data.source",
        "Status": "discreet.data.table",
        "describe": "discreet.data.describe",
        "read": "discreet.data.dataset",
    },
)
