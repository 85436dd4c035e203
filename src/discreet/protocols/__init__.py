"""Owners compute together and users look up privately."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Joint": "discreet.protocols.joint.analyst",
        "JointPolicy": "discreet.protocols.joint.declaration",
        "JointTable": "discreet.protocols.joint.result",
        "NoiseLaw": "discreet.protocols.perturbation.law",
        "Owner": "discreet.protocols.joint.party",
        "randomize": "discreet.protocols.perturbation.randomizing",
        "reconstruct": "discreet.protocols.perturbation.reconstruction",
    },
)
