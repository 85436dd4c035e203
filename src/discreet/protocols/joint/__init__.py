"""Owners compute joint tables whose rules are judged before anything is opened."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Joint": "discreet.protocols.joint.analyst",
        "JointAnswer": "discreet.protocols.joint.result",
        "JointPolicy": "discreet.protocols.joint.declaration",
        "Party": "discreet.protocols.joint.party",
        "verify_ledgers": "discreet.protocols.joint.verification",
    },
)
