"""Pictures for the reports, drawn to SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.page import svg

__all__ = ["bars", "scatter"]


def bars(values: Mapping[str, float], title: str) -> str:
    """Return a bar for each named share."""
    spec = {
        "data": {"values": [{"name": n, "value": float(v)} for n, v in values.items()]},
        "mark": {"type": "bar", "color": "#0b6e75"},
        "encoding": {
            "y": {"field": "name", "type": "nominal", "sort": None, "title": None},
            "x": {
                "field": "value",
                "type": "quantitative",
                "title": title,
                "scale": {"domain": [0, 1]},
            },
        },
        "width": 460,
        "height": {"step": 20},
    }
    return svg(_complete(spec))


def scatter(points: Sequence[Mapping[str, Any]], *, across: str, up: str) -> str:
    """Return a risk–utility map: points with `name`, `risk`, `loss` and `front`.

    Any: names, numbers and a boolean.
    """
    place = {
        "x": {"field": "loss", "type": "quantitative", "title": across},
        "y": {"field": "risk", "type": "quantitative", "title": up},
    }
    on_front = {"filter": "datum.front"}
    colour = {"condition": {"test": "datum.front", "value": "#0b6e75"}, "value": "#b8c4cf"}
    text = {"type": "text", "align": "left", "dx": 8, "fontSize": 10}
    spec = {
        "data": {"values": [dict(point) for point in points]},
        "width": 560,
        "height": 360,
        "layer": [
            {
                "transform": [on_front],
                "mark": {"type": "line", "color": "#0b6e75", "opacity": 0.5},
                "encoding": {**place, "order": {"field": "loss", "type": "quantitative"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70},
                "encoding": {**place, "color": colour},
            },
            {"mark": text, "encoding": {**place, "text": {"field": "name"}}},
        ],
    }
    return svg(_complete(spec))


def _complete(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "config": {"view": {"stroke": None}, "axis": {"grid": True, "gridColor": "#eef1f4"}},
        **spec,
    }
