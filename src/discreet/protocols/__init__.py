"""Owners compute together and users look up privately."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Joint": "discreet.protocols.joint.analyst",
        "JointPolicy": "discreet.protocols.joint.declaration",
        "JointTable": "discreet.protocols.joint.result",
        "Owner": "discreet.protocols.joint.party",
    },
)
