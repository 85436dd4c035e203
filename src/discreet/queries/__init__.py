"""Queries: SQL in, protected answers out."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Answer": "discreet.queries.answer",
        "Client": "discreet.queries.client",
        "Explanation": "discreet.queries.answer",
        "Gateway": "discreet.queries.gateway",
        "Policy": "discreet.queries.policies",
    },
)
