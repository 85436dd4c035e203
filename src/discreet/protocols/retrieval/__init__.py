"""Users look rows up by key while servers learn nothing but the size of the table."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "RetrievalRisk": "discreet.protocols.retrieval.evaluation",
        "retrieval_risk": "discreet.protocols.retrieval.evaluation",
        "Publisher": "discreet.protocols.retrieval.signing",
        "Retrieval": "discreet.protocols.retrieval.asking",
        "RetrievalTable": "discreet.protocols.retrieval.table",
        "Serving": "discreet.protocols.retrieval.serving",
    },
)
