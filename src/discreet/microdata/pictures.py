"""Pictures for the reports, drawn to SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet import chart

__all__ = ["bars", "curve", "heat_map", "paired_bars", "scatter"]

#: Size of a map, and the height of a line of its labels.
_WIDTH, _HEIGHT, _LINE = 560, 360, 13


def bars(values: Mapping[str, float], title: str) -> str:
    """Return a bar for each named share."""
    lines = {name: {title: float(value)} for name, value in values.items()}
    return chart.bars(lines, chart.Axis(title, high=1.0))


def scatter(points: Sequence[Mapping[str, Any]], *, across: str, up: str) -> str:
    """Return a risk–utility map: points with `name`, `risk`, `loss` and `front`.

    Any: names, numbers and a boolean.
    """
    spans = {axis: _span([float(p[axis]) for p in points]) for axis in ("loss", "risk")}
    axes = [
        chart.Axis(title, low=low, high=high)
        for title, (low, high) in zip((across, up), spans.values(), strict=True)
    ]
    front = sorted((float(p["loss"]), float(p["risk"])) for p in points if p["front"])
    behind = [(float(p["loss"]), float(p["risk"])) for p in points if not p["front"]]
    notes = [(float(p["loss"]), p["label"], str(p["name"])) for p in _labelled(points, spans)]
    series = [
        chart.Series("not beaten on both", front),
        chart.Series("beaten by another", behind, "#8a98a6", is_line=False),
    ]
    return chart.plot(series, *axes, notes=notes, size=(_WIDTH, _HEIGHT))


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


def paired_bars(shares: Sequence[Mapping[str, Any]]) -> str:
    """Return small charts, one per column, of shares in two files.

    Any: texts and numbers under `column`, `class`, `file` and `share`.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for one in shares:
        classes = found.setdefault(str(one["column"]), {})
        classes.setdefault(str(one["class"]), {})[str(one["file"])] = float(one["share"])
    files = list(dict.fromkeys(str(one["file"]) for one in shares))
    colours = dict(zip(files, ("#9fb0bf", chart.COLOURS[0]), strict=False))
    key = chart.grid({}, [], [], legend=colours)
    return f"{key}<br>" + "".join(
        chart.columns(
            {name: [both.get(file, 0.0) for file in files] for name, both in classes.items()},
            files,
            chart.Axis(),
            colours=list(colours.values()),
            title=column,
        )
        for column, classes in found.items()
    )


def heat_map(cells: Sequence[Mapping[str, Any]]) -> str:
    """Return a map of the distances between pairs of columns: `one`, `two` and `value`."""
    most = max((float(cell["value"]) for cell in cells), default=0.0) or 1.0
    shaded = {
        (str(cell["two"]), str(cell["one"])): (
            chart.shade(float(cell["value"]) / most),
            f"{cell['value']:.3f}",
        )
        for cell in cells
    }
    down, across = (
        list(dict.fromkeys(str(cell[side]) for cell in cells)) for side in ("two", "one")
    )
    legend = {f"{part * most:.3g}": chart.shade(part) for part in (0.0, 0.5, 1.0)}
    return chart.grid(shaded, down, across, legend=legend)


def curve(points: Sequence[Sequence[float]]) -> str:
    """Return the ROC curve of an attack, beside the diagonal of chance."""
    attack = [(float(false), float(true)) for false, true in points]
    series = [
        chart.Series("attack", attack, has_points=False),
        chart.Series("chance", [(0.0, 0.0), (1.0, 1.0)], "#8a98a6", has_points=False),
    ]
    across, up = (
        chart.Axis(f"people {where} called members", low=0.0, high=1.0)
        for where in ("outside", "inside")
    )
    return chart.plot(series, across, up, size=(300, 300))
