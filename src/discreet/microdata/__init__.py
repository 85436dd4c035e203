"""Microdata: masking, privacy models, anonymisation, risk and utility."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Analysis": "discreet.microdata.analysis",
        "Anonymized": "discreet.microdata.anonymized",
        "MaskingTransformer": "discreet.microdata.transformer",
        "MicrodataRelease": "discreet.microdata.release",
        "RiskBelow": "discreet.microdata.assessment",
        "SyntheticRelease": "discreet.microdata.synthetic_release",
        "anonymize": "discreet.microdata.anonymization",
        "combine": "discreet.microdata.combining",
        "frontier": "discreet.microdata.exploration",
        "judge": "discreet.microdata.judgement",
        "mask": "discreet.microdata.pipeline",
        "permute": "discreet.microdata.permutation.permute",
        "risk": "discreet.microdata.assessment",
        "strengthen": "discreet.microdata.strengthening",
        "synthesize": "discreet.microdata.synthesis",
        "utility": "discreet.microdata.comparison",
    },
)
