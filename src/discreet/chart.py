"""Pictures of reports as SVG: bars, columns, grids of cells, lines and points.

Drawn here, without a library: a page loads nothing from anywhere, and a core installation stays
small. Every label gets the room it needs, and what is drawn is said in words for those who listen.
"""

from __future__ import annotations

import dataclasses
import html
import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["COLOURS", "Axis", "Series", "bars", "columns", "grid", "histogram", "plot", "shade"]

#: Colours of series, told apart also without seeing colours well.
COLOURS = ("#0b6e75", "#d08a2e", "#6b5ca5", "#b5413a", "#8fb8de", "#5b8c3e", "#7a6a58", "#b8c4cf")
_INK, _RULE = "#1c2733", "#e3e9ee"
_FONT = 11
#: Height of a line, and of a bar in it.
_LINE, _BAR = 22, 15
_WIDTH = 420
#: Longer labels are cut; the whole text shows when pointed at.
_LABEL = 52
#: Bold text is wider than plain text by this factor.
_BOLD = 1.15
_STEPS = (1, 2, 5, 10)


@dataclasses.dataclass(frozen=True)
class Axis:
    """What an axis says: its title and ends, and how its numbers are written."""

    title: str = ""
    #: Ends; None takes them from the values, with zero among them.
    low: float | None = None
    high: float | None = None
    is_percent: bool = False
    #: Counts: no tick between two whole numbers.
    is_whole: bool = False
    #: Logarithmic scale: values must be above zero.
    is_log: bool = False
    #: Names at 0, 1, 2, … instead of numbers.
    names: tuple[str, ...] = ()

    def over(self, values: Iterable[float]) -> _Ticks:
        """Return the ticks that fit values."""
        known = [float(value) for value in values if math.isfinite(value)] or [0.0, 1.0]
        if self.names:
            named = tuple((float(at), name) for at, name in enumerate(self.names))
            return _Ticks(-0.5, len(self.names) - 0.5, named)
        if self.is_log:
            return _log_ticks(min(known), max(known))
        low = min(0.0, *known) if self.low is None else self.low
        high = max(0.0, *known) if self.high is None else self.high
        return _ticks(low, high, self)


@dataclasses.dataclass(frozen=True)
class _Ticks:
    """An axis laid out: its ends, and where it is labelled with what."""

    low: float
    high: float
    at: tuple[tuple[float, str], ...]
    is_log: bool = False

    def part(self, value: float) -> float:
        """Return how far along the axis a value lies, from 0 to 1."""
        if self.is_log:
            ends = math.log10(self.low), math.log10(self.high)
            return (math.log10(max(value, self.low)) - ends[0]) / (ends[1] - ends[0])
        return (value - self.low) / (self.high - self.low)


@dataclasses.dataclass(frozen=True)
class Series:
    """Points of one name, joined by a line or not."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: str = COLOURS[0]
    is_line: bool = True
    has_points: bool = True


def bars(
    lines: Mapping[str, Mapping[str, float]],
    axis: Axis,
    *,
    colours: Mapping[str, str] | None = None,
    title: str = "",
) -> str:
    """Return one bar per line, its parts one after the other.

    >>> drawn = bars({"north": {"safe": 3, "withheld": 1}}, Axis("cells"))
    >>> drawn.count("<rect"), "withheld: 1" in drawn
    (4, True)
    """
    names = list(dict.fromkeys(part for parts in lines.values() for part in parts))
    colour = colours or dict(zip(names, COLOURS * len(names), strict=False))
    ticks = axis.over(sum(parts.values()) for parts in lines.values())
    sheet = _Sheet(left=_room(lines), title=title)
    if len(names) > 1:
        sheet.legend({name: colour[name] for name in names})
    down = _LINE * len(lines)
    sheet.across(ticks, axis.title, _WIDTH, down)
    for number, (label, parts) in enumerate(lines.items()):
        middle = _LINE * (number + 0.5)
        sheet.text(-8, middle, label, anchor="end")
        start = 0.0
        for part, value in parts.items():
            told = f"{label}: {_number(value, axis)}"
            if len(names) > 1:
                told = f"{label}, {part}: {_number(value, axis)}"
            left, right = (ticks.part(end) * _WIDTH for end in (start, start + value))
            sheet.box(left, middle - _BAR / 2, right - left, _BAR, colour[part], told)
            start += value
    return sheet.drawn(_WIDTH, down, "bars")


def columns(
    heights: Mapping[str, Sequence[float]],
    names: Sequence[str],
    axis: Axis,
    *,
    colours: Sequence[str] = COLOURS,
    size: tuple[int, int] = (150, 90),
    title: str = "",
) -> str:
    """Return a column for each class and series, side by side, without names of the classes.

    >>> columns({"18-29": (0.2, 0.3)}, ["original", "released"], Axis()).count("<title")
    2
    """
    width, down = size
    ticks = axis.over(value for values in heights.values() for value in values)
    sheet = _Sheet(left=_room(name for _, name in ticks.at), title=title)
    sheet.up(ticks, axis.title, width, down)
    step = width / max(len(heights), 1)
    for number, (label, values) in enumerate(heights.items()):
        wide = step * 0.8 / max(len(values), 1)
        for at, value in enumerate(values):
            tall = ticks.part(value) * down
            told = f"{label}, {names[at]}: {_number(value, axis)}"
            left = step * (number + 0.1) + wide * at
            sheet.box(left, down - tall, wide, tall, colours[at], told)
    return sheet.drawn(width, down, "columns")


def histogram(values: Sequence[float], across: Axis, up: str) -> str:
    """Return how many values lie in each of at most twenty equal intervals.

    >>> histogram([0.1, 0.2, 0.2, 0.9], Axis("width"), "cells").count("<title")
    3
    """
    step = _step((max(values) - min(values)) or 1.0, 20)
    first, last = math.floor(min(values) / step), math.floor(max(values) / step) + 1
    counts = [0] * (last - first)
    for value in values:
        counts[math.floor(value / step) - first] += 1
    along = dataclasses.replace(across, low=first * step, high=last * step).over(values)
    ticks, width, down = Axis(up, is_whole=True).over(counts), _WIDTH, 160
    sheet = _Sheet(left=_room(name for _, name in ticks.at) + 18)
    sheet.up(ticks, up, width, down)
    sheet.across(along, across.title, width, down)
    for number, count in enumerate(counts):
        if count:
            ends = [(first + number + more) * step for more in (0, 1)]
            left, right = (along.part(end) * width for end in ends)
            tall = ticks.part(count) * down
            told = f"{_number(ends[0], across)} to {_number(ends[1], across)}: {count:,}"
            sheet.box(left + 0.5, down - tall, right - left - 1, tall, COLOURS[0], told)
    return sheet.drawn(width, down, "histogram")


def grid(
    cells: Mapping[tuple[str, str], tuple[str, str]],
    down: Sequence[str],
    across: Sequence[str],
    *,
    legend: Mapping[str, str],
    titles: tuple[str, str] = ("", ""),
) -> str:
    """Return cells by line and column, each with a colour and what it says when pointed at.

    >>> cell = {("IT", "north"): ("#b5413a", "withheld")}
    >>> "IT, north: withheld" in grid(cell, ["IT"], ["north"], legend={"withheld": "#b5413a"})
    True
    """
    wide, tall = 26, 18
    top = _room(across, most=24)
    left = max(_room(down), _BOLD * _room(titles[:1], most=len(titles[0])))
    sheet = _Sheet(left=left, top=top + (16 if titles[1] else 0))
    sheet.legend(legend)
    for number, name in enumerate(across):
        sheet.text(wide * (number + 0.5), -6, name, is_turned=True, most=24)
    for number, name in enumerate(down):
        sheet.text(-8, tall * (number + 0.5), name, anchor="end")
    for row, one in enumerate(down):
        for column, two in enumerate(across):
            if (one, two) in cells:
                colour, told = cells[one, two]
                at = wide * column + 0.5, tall * row + 0.5
                sheet.box(*at, wide - 1, tall - 1, colour, f"{one}, {two}: {told}".strip(", "))
    if titles[0]:
        sheet.text(-8, -8, titles[0], anchor="end", is_bold=True)
    if titles[1]:
        sheet.text(0, -top - 6, titles[1], is_bold=True)
    return sheet.drawn(wide * len(across), tall * len(down), "grid of cells")


def plot(
    series: Sequence[Series],
    across: Axis,
    up: Axis,
    *,
    notes: Sequence[tuple[float, float, str]] = (),
    size: tuple[int, int] = (_WIDTH, 240),
) -> str:
    """Return lines and points of several series, with notes at places of their own.

    >>> drawn = plot([Series("errors", [(1, 2), (2, 1)])], Axis("size"), Axis("error"))
    >>> drawn.count("<circle"), drawn.count("<polyline")
    (2, 1)
    """
    width, down = size
    points = [point for one in series for point in one.points]
    along, ticks = across.over(x for x, _ in points), up.over(y for _, y in points)
    sheet = _Sheet(left=_room(name for _, name in ticks.at) + 18)
    if len(series) > 1:
        sheet.legend({one.name: one.colour for one in series if one.name})
    sheet.up(ticks, up.title, width, down)
    sheet.across(along, across.title, width, down)

    def place(x: float, y: float) -> tuple[float, float]:
        return along.part(x) * width, (1 - ticks.part(y)) * down

    for one in series:
        if one.is_line and len(one.points) > 1:
            sheet.line([place(*point) for point in one.points], one.colour)
        for x, y in one.points if one.has_points else ():
            told = f"{_named(x, across)}, {_number(y, up)}"
            sheet.dot(*place(x, y), one.colour, f"{one.name}: {told}" if one.name else told)
    for x, y, text in notes:
        left, top = place(x, y)
        sheet.text(left + 8, top, text)
    return sheet.drawn(width, down, "lines and points")


def shade(part: float, light: str = "#eef6f6", dark: str = "#0b6e75") -> str:
    """Return the colour a part of the way from light to dark.

    >>> shade(0), shade(1)
    ('#eef6f6', '#0b6e75')
    """
    part = min(max(part, 0.0), 1.0)
    ends = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in (light, dark)]
    mixed = (round(a + (b - a) * part) for a, b in zip(*ends, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


class _Sheet:
    """Shapes of one picture; (0, 0) is the upper left corner of what is drawn."""

    def __init__(self, *, left: float, top: float = 0, title: str = "") -> None:
        self._shapes: list[str] = []
        self._left, self._above, self._below = left + 8, top + 8.0, 8.0
        self._right = 12.0
        self._title, self._key = title, ""
        self._wide = 0.0

    def box(self, x: float, y: float, width: float, height: float, colour: str, told: str) -> None:
        self._shapes.append(
            f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(width, 0):.1f}' "
            f"height='{max(height, 0):.1f}' fill='{colour}'>{_tip(told)}</rect>"
        )

    def dot(self, x: float, y: float, colour: str, told: str) -> None:
        self._shapes.append(
            f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4' fill='{colour}'>{_tip(told)}</circle>"
        )

    def line(self, points: Iterable[tuple[float, float]], colour: str) -> None:
        listed = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._shapes.append(
            f"<polyline points='{listed}' fill='none' stroke='{colour}' stroke-width='1.5'/>"
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        is_bold: bool = False,
        is_turned: bool = False,
        most: int = _LABEL,
    ) -> None:
        cut = text if len(text) <= most else text[: most - 1] + "…"
        turned = f" transform='rotate(-90 {x:.1f} {y:.1f})'" if is_turned else ""
        bold = " font-weight='600'" if is_bold else ""
        tip = _tip(text) if cut != text else ""
        self._shapes.append(
            f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' dominant-baseline='central'"
            f"{bold}{turned}>{html.escape(cut)}{tip}</text>"
        )
        if anchor == "start" and not is_turned:
            self._wide = max(self._wide, x + _width(cut))

    def across(self, ticks: _Ticks, title: str, width: float, down: float) -> None:
        """Draw a horizontal axis below what is drawn, its rules behind it."""
        for value, label in ticks.at:
            x = ticks.part(value) * width
            self._rule(x, 0, x, down)
            self.text(x, down + 12, label, anchor="middle")
        if title:
            self.text(width / 2, down + 30, title, anchor="middle", is_bold=True)
        self._below = 44.0 if title else 26.0
        self._right = max(self._right, _width(ticks.at[-1][1]) / 2 if ticks.at else 0)

    def up(self, ticks: _Ticks, title: str, width: float, down: float) -> None:
        """Draw a vertical axis, its rules behind what is drawn."""
        for value, label in ticks.at:
            y = (1 - ticks.part(value)) * down
            self._rule(0, y, width, y)
            self.text(-8, y, label, anchor="end")
        if title:
            place = 10 - self._left
            self.text(place, down / 2, title, anchor="middle", is_bold=True, is_turned=True)

    def legend(self, colours: Mapping[str, str]) -> None:
        """Put the names of the colours above."""
        shapes, at, line = [], 0.0, 0
        for name, colour in colours.items():
            wide = 18 + _width(name) + 14
            if at and at + wide > _WIDTH + 80:
                at, line = 0.0, line + 1
            y = line * 18 + 8
            shapes.append(
                f"<rect x='{at:.1f}' y='{y - 6}' width='12' height='12' fill='{colour}'/>"
                f"<text x='{at + 17:.1f}' y='{y}' dominant-baseline='central'>{html.escape(name)}</text>"
            )
            at += wide
            self._wide = max(self._wide, at)
        lift = self._above + line * 18 + 20
        self._key = f"<g transform='translate(0 {-lift:.1f})'>{''.join(shapes)}</g>"
        self._above = lift

    def drawn(self, width: float, height: float, kind: str) -> str:
        """Return the picture, as large as all of it."""
        above = self._above + (20 if self._title else 0)
        wide = self._left + max(width + self._right, self._wide + 8)
        tall = above + height + self._below
        heading = ""
        if self._title:
            heading = (
                f"<text x='0' y='{8 - above:.1f}' font-weight='600' dominant-baseline='central'>"
                f"{html.escape(self._title)}</text>"
            )
        said = html.escape(f"{kind}: {self._title}" if self._title else kind, quote=True)
        return (
            f"<svg xmlns='http://www.w3.org/2000/svg' role='img' aria-label='{said}' "
            f"width='{wide:.0f}' height='{tall:.0f}' viewBox='0 0 {wide:.0f} {tall:.0f}' "
            f"font-family='system-ui, sans-serif' font-size='{_FONT}' fill='{_INK}'>"
            f"<g transform='translate({self._left:.1f} {above:.1f})'>"
            f"{heading}{self._key}{''.join(self._shapes)}</g></svg>"
        )

    def _rule(self, *ends: float) -> None:
        x1, y1, x2, y2 = (f"{end:.1f}" for end in ends)
        self._shapes.append(
            f"<line x1='{x1}' y1='{y1}' x2='{x2}' y2='{y2}' stroke='{_RULE}' stroke-width='1'/>"
        )


def _tip(text: str) -> str:
    return f"<title>{html.escape(text)}</title>"


def _width(text: str) -> float:
    """Return about how wide a text is; East Asian characters take twice the room."""
    return sum(
        _FONT * (1.05 if unicodedata.east_asian_width(letter) in "WF" else 0.62) for letter in text
    )


def _room(labels: Iterable[str], most: int = _LABEL) -> float:
    return max((_width(label[:most]) for label in labels), default=0.0) + 8


def _step(span: float, most: int) -> float:
    """Return the least round step that divides a span into at most so many."""
    least = span / most
    power = 10.0 ** math.floor(math.log10(least))
    return float(next(step * power for step in _STEPS if step * power >= least * (1 - 1e-9)))


def _ticks(low: float, high: float, axis: Axis) -> _Ticks:
    if high <= low:
        high = low + 1
    step = _step(high - low, 6)
    if axis.is_whole:
        step = max(step, 1.0)
    # Ends that were asked for are kept; others are rounded outwards to a tick.
    if axis.low is None:
        low = math.floor(low / step + 1e-9) * step
    if axis.high is None:
        high = math.ceil(high / step - 1e-9) * step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    at = ((number * step, _number(number * step, axis)) for number in range(first, last + 1))
    return _Ticks(low, high, tuple(at))


def _log_ticks(low: float, high: float) -> _Ticks:
    ends = math.floor(math.log10(max(low, 1e-12))), math.ceil(math.log10(max(high, 1e-12)))
    first, last = ends if ends[0] < ends[1] else (ends[0], ends[0] + 1)
    at = tuple((10.0**power, f"{10.0**power:,.10g}") for power in range(first, last + 1))
    return _Ticks(10.0**first, 10.0**last, at, is_log=True)


def _number(value: float, axis: Axis) -> str:
    if axis.is_percent:
        return f"{round(100 * value, 4):,.4g} %"
    return f"{round(value, 10):,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"


def _named(value: float, axis: Axis) -> str:
    return axis.names[int(value)] if axis.names else _number(value, axis)
