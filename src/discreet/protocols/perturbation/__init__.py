"""Records behind published noise, and the distributions that can be had back from them."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "NoiseLaw": "discreet.protocols.perturbation.law",
        "Randomized": "discreet.protocols.perturbation.randomizing",
        "Reconstruction": "discreet.protocols.perturbation.reconstruction",
        "randomize": "discreet.protocols.perturbation.randomizing",
        "reconstruct": "discreet.protocols.perturbation.reconstruction",
        "spectral_filter": "discreet.audit.spectral",
    },
)
