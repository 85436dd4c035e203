"""Pictures of joint computations: messages, what was learned, and how close results are to central ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.chart import COLOURS, Axis, Series, bars, plot
from discreet.page import Section

__all__ = [
    "draw_against_central",
    "draw_learned",
    "draw_messages",
    "draw_noise",
    "run_sections",
]

_INK, _WARM, _SOFT = COLOURS[0], COLOURS[1], COLOURS[7]


def draw_messages(transcripts: Mapping[str, Any]) -> str:
    """Return a bar for each pair of parties: the bytes that one sent the other.

    Any: transcripts as `Transcript.to_dict` states them.
    """
    lines = {
        f"{party} → {peer}, messages: {way['messages']:,}": {"bytes": float(way["bytes"])}
        for party, one in transcripts.items()
        for peer, way in one.get("sent", {}).items()
    }
    return bars(lines, Axis("bytes", is_whole=True))


def draw_learned(transcripts: Mapping[str, Any]) -> str:
    """Return bars for each party: bytes that say something to it, and bytes that are noise to it."""
    lines: dict[str, dict[str, float]] = {}
    for party, one in transcripts.items():
        got = sum(way["bytes"] for way in one.get("received", {}).values())
        told = sum(opening["bytes"] for opening in one.get("opened", ()))
        lines[f"{party}, opened"] = {"opened to it": float(max(told, 1))}
        lines[f"{party}, noise"] = {"uniformly random to it": float(max(got - told, 1))}
    colours = {"opened to it": _WARM, "uniformly random to it": _SOFT}
    return bars(lines, Axis("bytes received", is_log=True), colours=colours)


def draw_against_central(
    joint: npt.ArrayLike, central: npt.ArrayLike, *, what: str = "value"
) -> str:
    """Return each opened number over the one that a single curator computes: a straight line.

    Examples
    --------
    >>> draw_against_central([1.0, 2.0], [1.0, 2.0]).startswith("<svg")
    True
    """
    ours, theirs = (np.asarray(one, dtype=np.float64).reshape(-1) for one in (joint, central))
    both = np.isfinite(ours) & np.isfinite(theirs)
    ends = float(min(theirs[both], default=0)), float(max(theirs[both], default=1))
    points = list(zip(theirs[both].tolist(), ours[both].tolist(), strict=True))
    equal = Series("equal", [(end, end) for end in ends], _SOFT, has_points=False)
    return plot(
        [equal, Series(what, points, _INK, is_line=False)],
        Axis(f"{what}, one curator"),
        Axis(f"{what}, computed jointly"),
    )


def draw_noise(shared: npt.ArrayLike, central: npt.ArrayLike, *, bins: int = 40) -> str:
    """Return the distributions of noise that owners add in shares and of central noise."""
    several = {"in shares": np.asarray(shared), "central": np.asarray(central)}
    both = np.concatenate([one.reshape(-1) for one in several.values()]).astype(np.float64)
    # Noise is whole numbers: bins of whole width hold equally many of them.
    width = max(1, int(np.ceil((both.max() - both.min() + 1) / bins)))
    edges = np.arange(np.floor(both.min()), both.max() + 2 * width, width) - 0.5
    series = []
    for (name, values), colour in zip(several.items(), (_INK, _WARM), strict=True):
        shares = np.histogram(values, edges)[0] / values.size
        middles = (edges[:-1] + width / 2).tolist()
        points = list(zip(middles, shares.tolist(), strict=True))
        series.append(Series(name, points, colour, has_points=False))
    return plot(series, Axis("noise"), Axis("share of the sums", is_percent=True))


def run_sections(transcripts: Mapping[str, Any], leakage: Any) -> list[Section]:
    """Return what a page says of a run. Any: the statement of what parties learn, a report."""
    rounds = max((one.get("rounds", 0) for one in transcripts.values()), default=0)
    opened: Sequence[Any] = max(
        (one.get("opened", ()) for one in transcripts.values()), key=len, default=()
    )
    lines = [(one["meaning"], one.get("cells", ""), one["bytes"]) for one in opened]
    return [
        Section("What each party learned", table=leakage, picture=draw_learned(transcripts),
                caption="On a scale on which small and large bars can be read."),
        Section("What was opened", table=(("meaning", "cells", "bytes"), lines)),
        Section("Messages", text=f"{rounds} rounds.", picture=draw_messages(transcripts),
                caption="Bytes from party to party."),
    ]  # fmt: skip
