"""Pictures of joint computations: messages, what was learned, and how close results are to central ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.page import Section, svg

__all__ = [
    "draw_against_central",
    "draw_learned",
    "draw_messages",
    "draw_noise",
    "run_sections",
]

_INK, _SOFT, _WARM = "#0b6e75", "#d5dce3", "#e0a030"


def draw_messages(transcripts: Mapping[str, Any]) -> str:
    """Return a bar for each pair of parties: the bytes that one sent the other.

    Any: transcripts as `Transcript.to_dict` states them.
    """
    rows = [
        {"way": f"{party} → {peer}", "bytes": way["bytes"], "messages": way["messages"]}
        for party, one in transcripts.items()
        for peer, way in one.get("sent", {}).items()
    ]
    bar = {"type": "bar", "color": _INK}
    x = {"field": "bytes", "type": "quantitative", "title": "bytes", "axis": {"format": "~s"}}
    count = {"text": {"field": "messages", "type": "quantitative", "format": ","}}
    text = {"type": "text", "align": "left", "dx": 4}
    return _bars(rows, "way", [{"mark": bar, "encoding": {"x": x}},
                               {"mark": text, "encoding": {"x": x, **count}}])  # fmt: skip


def draw_learned(transcripts: Mapping[str, Any]) -> str:
    """Return a bar for each party: bytes that say something to it, and bytes that are noise to it."""
    rows = []
    for party, one in transcripts.items():
        got = sum(way["bytes"] for way in one.get("received", {}).values())
        told = sum(opening["bytes"] for opening in one.get("opened", ()))
        rows.append({"party": party, "what": "opened to it", "bytes": max(told, 1)})
        rows.append({"party": party, "what": "uniformly random to it", "bytes": max(got - told, 1)})
    x = {"field": "bytes", "type": "quantitative", "title": "bytes received",
         "axis": {"format": "~s", "values": [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]},
         "scale": {"type": "log"}, "stack": None}  # fmt: skip
    colour = {"field": "what", "type": "nominal", "title": None, "legend": {"orient": "top"},
              "scale": {"range": [_WARM, _SOFT]}}  # fmt: skip
    offset = {"field": "what", "type": "nominal"}
    encoding = {"x": x, "color": colour, "yOffset": offset}
    return _bars(rows, "party", [{"mark": "bar", "encoding": encoding}])


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
    rows = [{"joint": a, "central": b} for a, b in zip(ours[both], theirs[both], strict=True)]
    ends = [float(min(theirs[both], default=0)), float(max(theirs[both], default=1))]
    line = {"data": {"values": [{"joint": one, "central": one} for one in ends]},
            "mark": {"type": "line", "color": _SOFT}}  # fmt: skip
    points = {"data": {"values": rows}, "mark": {"type": "point", "color": _INK, "filled": True}}
    return svg(
        _spec(
            layer=[line, points],
            encoding={
                "x": {"field": "central", "type": "quantitative", "title": f"{what}, one curator"},
                "y": {
                    "field": "joint",
                    "type": "quantitative",
                    "title": f"{what}, computed jointly",
                },
            },
            width=360,
            height=300,
        )
    )


def draw_noise(shared: npt.ArrayLike, central: npt.ArrayLike, *, bins: int = 40) -> str:
    """Return the distributions of noise that owners add in shares and of central noise, as steps."""
    several = {"in shares": np.asarray(shared), "central": np.asarray(central)}
    both = np.concatenate([one.reshape(-1) for one in several.values()]).astype(np.float64)
    # Noise is whole numbers: bins of whole width hold equally many of them.
    width = max(1, int(np.ceil((both.max() - both.min() + 1) / bins)))
    edges = np.arange(np.floor(both.min()), both.max() + 2 * width, width) - 0.5
    rows = [
        {"noise": float(edge), "share": float(part), "who": name}
        for name, values in several.items()
        for edge, part in zip(edges, np.histogram(values, edges)[0] / values.size, strict=False)
    ]
    return svg(
        _spec(
            data={"values": rows},
            mark={"type": "line", "interpolate": "step-after"},
            encoding={
                "x": {"field": "noise", "type": "quantitative"},
                "y": {"field": "share", "type": "quantitative", "title": "share of the sums"},
                "color": {"field": "who", "type": "nominal", "title": None,
                          "scale": {"range": [_INK, _WARM]}},
            },
            height=220,
        )
    )  # fmt: skip


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
                caption="Bytes from party to party; beside the bars the number of messages."),
    ]  # fmt: skip


def _bars(rows: list[dict[str, Any]], by: str, layer: list[dict[str, Any]]) -> str:
    y = {"field": by, "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 320}}
    return svg(_spec(data={"values": rows}, encoding={"y": y}, layer=layer, height={"step": 22}))


def _spec(**parts: Any) -> dict[str, Any]:
    return {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "width": 460, **parts}
