"""Owners compute together and users look up privately."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Publisher": "discreet.protocols.retrieval.signing",
        "Retrieval": "discreet.protocols.retrieval.asking",
        "RetrievalRisk": "discreet.protocols.retrieval.evaluation",
        "RetrievalTable": "discreet.protocols.retrieval.table",
        "SearchRisk": "discreet.protocols.search._base",
        "Vocabulary": "discreet.protocols.search._base",
        "search_risk": "discreet.protocols.search._base",
        "retrieval_risk": "discreet.protocols.retrieval.evaluation",
    },
)
