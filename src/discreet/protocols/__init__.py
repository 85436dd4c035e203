"""Owners compute together and users look up privately."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Publisher": "discreet.protocols.retrieval.signing",
        "Retrieval": "discreet.protocols.retrieval.asking",
        "RetrievalRisk": "discreet.protocols.retrieval.evaluation",
        "RetrievalTable": "discreet.protocols.retrieval.table",
        "retrieval_risk": "discreet.protocols.retrieval.evaluation",
    },
)
