"""Microdata: masking, privacy models, anonymisation, risk and utility."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Analysis": "discreet.microdata.analysis",
        "Anonymized": "discreet.microdata.anonymization",
        "MaskingTransformer": "discreet.microdata.transformer",
        "MicrodataRelease": "discreet.microdata.release",
        "RiskBelow": "discreet.microdata.assessment",
        "anonymize": "discreet.microdata.anonymization",
        "frontier": "discreet.microdata.exploration",
        "mask": "discreet.microdata.pipeline",
        "permute": "discreet.microdata.permutation.permute",
        "risk": "discreet.microdata.assessment",
        "strengthen": "discreet.microdata.strengthening",
        "utility": "discreet.microdata.comparison",
    },
)
