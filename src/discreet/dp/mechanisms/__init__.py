"""Mechanisms: noise on whole numbers, drawn by OpenDP, with the privacy loss it proves."""

from discreet.dp.mechanisms._base import Mechanism, Noise
from discreet.registry import Family

__all__ = ["FAMILY", "Mechanism", "Noise"]

FAMILY = Family("mechanism", Mechanism, __name__)
