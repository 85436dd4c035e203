"""Owners compute together and users look up privately."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Fragments": "discreet.protocols.fragments.asking",
        "Joint": "discreet.protocols.joint.analyst",
        "JointAnswer": "discreet.protocols.joint.result",
        "JointPolicy": "discreet.protocols.joint.declaration",
        "NoiseLaw": "discreet.protocols.perturbation.law",
        "Owner": "discreet.protocols.joint.party",
        "Publisher": "discreet.protocols.retrieval.signing",
        "Retrieval": "discreet.protocols.retrieval.asking",
        "RetrievalRisk": "discreet.protocols.retrieval.evaluation",
        "RetrievalTable": "discreet.protocols.retrieval.table",
        "SearchRisk": "discreet.protocols.search._base",
        "Vocabulary": "discreet.protocols.search._base",
        "fragment": "discreet.protocols.fragments.splitting",
        "randomize": "discreet.protocols.perturbation.randomizing",
        "reconstruct": "discreet.protocols.perturbation.reconstruction",
        "retrieval_risk": "discreet.protocols.retrieval.evaluation",
        "search_risk": "discreet.protocols.search._base",
    },
)
