"""Pictures for the reports, drawn to SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.page import svg

__all__ = ["bars", "curve", "heat_map", "paired_bars", "scatter"]

#: Size of a map, and the height of a line of its labels.
_WIDTH, _HEIGHT, _LINE = 560, 360, 13


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
    spans = {axis: _span([float(p[axis]) for p in points]) for axis in ("loss", "risk")}
    place = {
        "x": {
            "field": "loss",
            "type": "quantitative",
            "title": across,
            "scale": {"domain": spans["loss"], "nice": False},
        },
        "y": {
            "field": "risk",
            "type": "quantitative",
            "title": up,
            "scale": {"domain": spans["risk"], "nice": False},
        },
    }
    beside = {**place, "y": {**place["y"], "field": "label"}, "text": {"field": "name"}}
    on_front = {"filter": "datum.front"}
    colour = {"condition": {"test": "datum.front", "value": "#0b6e75"}, "value": "#b8c4cf"}
    text = {"type": "text", "align": "left", "dx": 8, "fontSize": 10}
    spec = {
        "data": {"values": _labelled(points, spans)},
        "width": _WIDTH,
        "height": _HEIGHT,
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
            {"mark": text, "encoding": beside},
        ],
    }
    return svg(_complete(spec))


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Return an axis with some room around the values, within 0 and above."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max(0.08 * (high - low), 0.02 * abs(high), 1e-6)
    return max(0.0, low - room), high + room


def _labelled(
    points: Sequence[Mapping[str, Any]], spans: Mapping[str, tuple[float, float]]
) -> list[dict[str, Any]]:
    """Give each point the height of its label, moved down where another one is in the way."""
    (left, right), (low, high) = spans["loss"], spans["risk"]
    across, down = _WIDTH / (right - left), _HEIGHT / (high - low)
    placed: list[tuple[float, float, float]] = []
    found = []
    for point in sorted(points, key=lambda p: (-float(p["risk"]), float(p["loss"]))):
        start = (float(point["loss"]) - left) * across
        end = start + 20 + 6 * len(str(point["name"]))
        top = (high - float(point["risk"])) * down
        for begin, stop, other in sorted(placed, key=lambda p: p[2]):
            if begin < end and start < stop and abs(top - other) < _LINE:
                top = other + _LINE
        placed.append((start, end, top))
        found.append({**point, "label": high - top / down})
    return found


def _complete(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "config": {"view": {"stroke": None}, "axis": {"grid": True, "gridColor": "#eef1f4"}},
        **spec,
    }


def paired_bars(shares: Sequence[Mapping[str, Any]]) -> str:
    """Return small charts, one per column, of shares in two files.

    Any: texts and numbers under `column`, `class`, `file` and `share`.
    """
    spec = {
        "data": {"values": list(shares)},
        "mark": {"type": "bar", "width": 4},
        "encoding": {
            "facet": {"field": "column", "type": "nominal", "columns": 4, "title": None},
            "x": {"field": "class", "type": "nominal", "sort": None, "axis": None},
            "y": {"field": "share", "type": "quantitative", "title": None},
            "color": {
                "field": "file",
                "type": "nominal",
                "title": None,
                "scale": {"range": ["#b8c4cf", "#0b6e75"]},
                "legend": {"orient": "top"},
            },
        },
        "resolve": {"scale": {"x": "independent", "y": "independent"}},
    }
    sized = {"width": 130, "height": 90}
    return svg(_complete({**spec, **sized}))


def heat_map(cells: Sequence[Mapping[str, Any]]) -> str:
    """Return a map of the distances between pairs of columns: `one`, `two` and `value`."""
    place = {"type": "nominal", "title": None, "sort": None}
    spec = {
        "data": {"values": list(cells)},
        "mark": {"type": "rect"},
        "encoding": {
            "x": {"field": "one", **place, "axis": {"labelAngle": -40}},
            "y": {"field": "two", **place},
            "color": {
                "field": "value",
                "type": "quantitative",
                "title": "distance",
                "scale": {"range": ["#eef6f6", "#0b6e75"]},
            },
        },
        "width": {"step": 34},
        "height": {"step": 24},
    }
    return svg(_complete(spec))


def curve(points: Sequence[Sequence[float]]) -> str:
    """Return the ROC curve of an attack, beside the diagonal of chance."""
    axis = {"type": "quantitative", "scale": {"domain": [0, 1]}}
    place = {
        "x": {"field": "false", "title": "people outside called members", **axis},
        "y": {"field": "true", "title": "people inside called members", **axis},
    }
    lines = [
        {"line": "attack", "false": float(false), "true": float(true)} for false, true in points
    ]
    lines += [{"line": "chance", "false": v, "true": v} for v in (0.0, 1.0)]
    spec = {
        "data": {"values": lines},
        "mark": {"type": "line"},
        "encoding": {
            **place,
            "color": {
                "field": "line",
                "type": "nominal",
                "title": None,
                "scale": {"range": ["#0b6e75", "#b8c4cf"]},
            },
        },
        "width": 300,
        "height": 300,
    }
    return svg(_complete(spec))
