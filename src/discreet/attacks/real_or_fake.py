"""Made searches told from real ones."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.registry import parameter

__all__ = ["RealOrFake"]


@dataclasses.dataclass(frozen=True)
class RealOrFake(Attack):
    """Train a classifier on one half of a history of searches, and sort the other half with it.

    What is known of a search are numbers: the gap to the one before, how often its topic returns,
    how rare its words are.

    Examples
    --------
    >>> rarity = np.array([[1.0], [9.0], [2.0], [8.0]] * 10)
    >>> RealOrFake().run(rarity, rarity[:, 0] < 5).succeeded
    True
    """

    name: ClassVar[str] = "real-or-fake"
    reference: ClassVar[str] = (
        "Peddinti and Saxena (2010), On the privacy of web search based on query obfuscation, PETS"
    )
    attacks: ClassVar[Attacked] = "view"

    auc: float = parameter(
        0.75,
        help="area under the ROC curve from which it succeeds; 0.5 is chance",
        above=0.5,
        below=1,
    )

    def run(
        self, features: npt.NDArray[np.float64], is_real: npt.NDArray[np.bool_]
    ) -> AttackReport:
        """Conclude which searches are real; reports the area under the ROC curve."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import roc_auc_score
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        half = len(features) // 2
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        model.fit(features[:half], is_real[:half])
        scores = model.predict_proba(features[half:])[:, 1]
        found = float(roc_auc_score(is_real[half:], scores))
        return AttackReport(self.name, len(features), 0, found, found, found >= self.auc)

    def control(self) -> AttackReport:
        """Attack made searches of rare words at regular times."""
        drawn = np.random.default_rng(1)
        is_real = drawn.random(400) < 0.3
        gaps = np.where(is_real, drawn.exponential(1.0, 400), 6.0)
        rarity = np.where(is_real, drawn.normal(8, 1, 400), drawn.normal(13, 1, 400))
        return self.run(np.stack([gaps, rarity], axis=1), is_real)
