"""Where hierarchies come from: level tables, nested lists, intervals, rare values, `.hrc`, ARX.

Every function here reads a source and returns it in one of two shapes that `Hierarchy` is made
from: (line, child, parent) triples, or a level table with one row per single value.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError

__all__ = ["Levels", "Triple", "is_header"]

#: Line, child, parent.
Triple = tuple[int, str, str]
Place = str | Path | None
#: Lines of a file: number and fields.
Rows = list[tuple[int, list[str]]]


#: What the column of parents is called, where a first line names the columns.
_PARENT = re.compile(r"parents?([ _-]?(code|id|key|name))?", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, eq=False)
class Levels:
    """A tree whose every level is spelt out: codes, parents, and each leaf's code per level."""

    codes: tuple[str, ...]
    parents: npt.NDArray[np.int32]
    table: npt.NDArray[np.int32]


def triples(source: Any, file: Place) -> Iterator[Triple]:
    """Give child/parent pairs from a CSV file, a frame with two columns, or an iterable.

    Any: whatever the caller has; a frame may be of any library that narwhals reads.
    """
    if isinstance(source, str | Path):
        from discreet.data.files import read_rows

        rows = _child_first(read_rows(source))
        if rows and is_header(rows):
            rows = rows[1:]
        for line, fields in rows:
            if len(fields) != 2:
                raise InputError(
                    f"the line has {len(fields)} fields where child and parent are needed",
                    code="ragged-row",
                    hint="write child,parent; the root's parent is empty",
                    file=source,
                    line=line,
                )
        named = [(line, child.strip(), parent.strip()) for line, (child, parent) in rows]
        root = _unlisted_root(named)
        if root is not None:
            yield 0, root, ""
        yield from named
        return
    if hasattr(source, "columns") or hasattr(source, "column_names"):
        source = frame_rows(source, 2, file)
    for line, pair in enumerate(source, start=1):
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(
                "a pair is not a (child, parent) tuple", code="ragged-row", file=file, line=line
            )
        child, parent = ("" if part is None else str(part) for part in pair)
        yield line, child, parent


def _child_first(rows: Rows) -> Rows:
    """Return child and parent alone, in this order, where the first line names the parent's column.

    >>> _child_first([(1, ["Parent code", "Code", "Label"]), (2, ["DE", "DE1", "South"])])
    [(1, ['child', 'parent']), (2, ['DE1', 'DE'])]
    """
    first = [field.strip() for field in rows[0][1]] if rows else []
    above = [place for place, name in enumerate(first) if _PARENT.fullmatch(name)]
    below = {field.strip() for _, fields in rows[1:] for field in fields}
    is_even = all(len(fields) == len(first) for _, fields in rows)
    if len(above) != 1 or len(first) < 2 or not is_even or below & set(first):
        return rows
    child = 1 if above[0] == 0 else 0
    named = [(line, [fields[child], fields[above[0]]]) for line, fields in rows[1:]]
    return [(rows[0][0], ["child", "parent"]), *named]


def is_header(rows: Sequence[tuple[int, Sequence[str]]]) -> bool:
    """Whether the first line names the columns: child,parent, or two words that are no codes."""
    first = [field.strip() for field in rows[0][1]]
    if [field.lower() for field in first] == ["child", "parent"]:
        return True
    if len(first) != 2 or not all(first) or len(rows) < 3:
        return False
    codes = {field.strip() for _, fields in rows[1:] for field in fields}
    others = [(line, fields[0].strip(), fields[-1].strip()) for line, fields in rows[1:]]
    has_root = any(parent == "" for _, _, parent in others) or _unlisted_root(others) is not None
    return has_root and not codes & set(first)


def _unlisted_root(pairs: Sequence[Triple]) -> str | None:
    """Return the one parent that is nobody's child, where no line names a root."""
    children = {child for _, child, _ in pairs}
    above = {parent for _, _, parent in pairs} - children
    return above.pop() if len(above) == 1 and "" not in above else None


def frame_rows(frame: Any, width: int | None, file: Place) -> list[tuple[Any, ...]]:
    """Return the rows of a frame, missing values as None."""
    import narwhals.stable.v1 as nw

    data = nw.from_native(frame, eager_only=True)
    if width is not None and len(data.columns) != width:
        raise InputError(
            f"the frame has {len(data.columns)} columns where {width} are needed",
            code="ragged-row",
            hint="give the columns child and parent",
            file=file,
        )
    columns = [data[name].to_list() for name in data.columns]
    rows = zip(*columns, strict=True)
    return [tuple(None if v is None or v != v else v for v in row) for row in rows]  # NaN ≠ itself


def nested(levels: Any, total: str) -> Iterator[Triple]:
    """Give the pairs of a nested mapping: names of groups, lists or mappings of what is in them.

    Any: a mapping of mappings of any depth, or a list of single values.
    """
    yield 1, total, ""
    line = 1
    stack: list[tuple[str, Any]] = [(total, [levels] if isinstance(levels, str) else levels)]
    while stack:
        parent, below = stack.pop(0)
        for child in below:
            line += 1
            yield line, str(child), parent
            inside = below[child] if isinstance(below, Mapping) else None
            if isinstance(inside, str):
                inside = [inside]
            if inside:
                stack.append((str(child), inside))


def hrc(path: str | Path, total: str, leading: str) -> Iterator[Triple]:
    """Give the pairs of a tau-Argus `.hrc` file: a code per line, its depth as leading strings."""
    from discreet.data.files import read_lines

    if leading == "":
        raise InputError(
            "the leading string is empty", code="hierarchy-leading", hint="write leading='@'"
        )
    yield 0, total, ""
    chain = [total]
    first = True
    for line, text in read_lines(path):
        text = text.rstrip()
        depth = 0
        while text.startswith(leading, depth * len(leading)):
            depth += 1
        code = text[depth * len(leading) :].strip()
        if not text.strip():
            continue
        if code == "":
            raise InputError(
                "the line has leading strings and no code",
                code="hierarchy-empty-code",
                file=path,
                line=line,
            )
        if depth > len(chain) - 1:
            raise InputError(
                f"code {code!r} is {depth} levels deep below one of {len(chain) - 2} levels"
                if not first
                else f"the first code {code!r} must not be indented",
                code="hierarchy-depth-jump",
                hint=f"go down one {leading!r} at a time",
                file=path,
                line=line,
                value=code,
            )
        first = False
        del chain[depth + 1 :]
        yield line, code, chain[depth]
        chain.append(code)


def rooted(pairs: Iterable[Triple], file: Place) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Return codes, parents before children, and each one's parent, or say what is no tree."""
    parent_of, line_of = _parents(pairs, file)
    roots = [child for child, parent in parent_of.items() if parent == ""]
    children: dict[str, list[str]] = {}
    for child, parent in parent_of.items():
        if parent != "":
            if parent not in parent_of:
                raise InputError(
                    f"code {child!r} has parent {parent!r}, which is not in the hierarchy",
                    code="hierarchy-orphan",
                    hint=f"add a line for {parent!r}",
                    file=file,
                    line=line_of.get(child),
                    value=child,
                )
            children.setdefault(parent, []).append(child)
    if len(roots) != 1:
        found = (
            "no code without a parent"
            if not roots
            else f"{len(roots)} roots: {', '.join(roots[:5])}"
        )
        raise InputError(
            f"a hierarchy has one root, found {found}",
            code="hierarchy-cycle" if not roots and parent_of else "hierarchy-roots",
            hint="write one line whose parent is empty",
            file=file,
            line=line_of.get(roots[1]) if len(roots) > 1 else None,
        )
    order, place = [roots[0]], 0
    while place < len(order):  # breadth first, so that parents come before children
        order.extend(children.get(order[place], ()))
        place += 1
    if len(order) != len(parent_of):
        lost = sorted(set(parent_of) - set(order))
        raise InputError(
            f"codes lead to each other in a circle: {', '.join(lost[:5])}",
            code="hierarchy-cycle",
            hint="every code must lead up to the root",
            file=file,
            line=line_of.get(lost[0]),
            value=lost[0],
        )
    index = {code: i for i, code in enumerate(order)}
    parents = np.array([index.get(parent_of[code], -1) for code in order], dtype=np.int32)
    return tuple(order), parents


def _parents(pairs: Iterable[Triple], file: Place) -> tuple[dict[str, str], dict[str, int]]:
    """Return each code's parent and line."""
    parent_of: dict[str, str] = {}
    line_of: dict[str, int] = {}
    for line, child, parent in pairs:
        if child == "":
            raise InputError("a code is empty", code="hierarchy-empty-code", file=file, line=line)
        if child in parent_of:
            same = parent_of[child] == parent
            if same and file is None:
                continue
            raise InputError(
                f"code {child!r} is listed twice"
                if same
                else f"code {child!r} has two parents, {parent_of[child]!r} and {parent!r}",
                code="hierarchy-duplicate" if same else "hierarchy-two-parents",
                hint="list each code once"
                if same
                else "give each code one parent, or make two hierarchies of the attribute",
                file=file,
                line=line,
                value=child,
            )
        parent_of[child] = parent
        line_of[child] = line
    if not parent_of:
        raise InputError("the hierarchy is empty", code="hierarchy-empty", file=file)
    return parent_of, line_of


def level_rows(
    rows: Iterable[tuple[int, Sequence[Any]]], total: str | None, file: Place
) -> tuple[list[list[str]], list[int]]:
    """Return a level table as text, every row from the single value to the root."""
    labels: list[list[str]] = []
    lines: list[int] = []
    for line, fields in rows:
        row = ["" if field is None else str(field).strip() for field in fields]
        if labels and len(row) != len(labels[0]):
            raise InputError(
                f"the line has {len(row)} levels where the first has {len(labels[0])}",
                code="ragged-row",
                hint="give every value as many levels; repeat a name to stay on it",
                file=file,
                line=line,
            )
        if "" in row:
            raise InputError(
                f"level {row.index('')} of the line is empty",
                code="hierarchy-empty-code",
                hint="repeat the name of the level below",
                file=file,
                line=line,
            )
        labels.append(row)
        lines.append(line)
    if not labels:
        raise InputError("the hierarchy is empty", code="hierarchy-empty", file=file)
    tops = list(dict.fromkeys(row[-1] for row in labels))
    if len(tops) > 1:
        if total is None:
            raise InputError(
                f"a hierarchy has one root, found {len(tops)}: {', '.join(tops[:5])}",
                code="hierarchy-roots",
                hint="end every line with the same name, or pass total='*'",
                file=file,
            )
        labels = [[*row, total] for row in labels]
    elif len(labels[0]) == 1:
        labels = [[*row, total or "*"] for row in labels]
    return labels, lines


def tree(labels: Sequence[Sequence[str]], lines: Sequence[int], file: Place) -> Levels:
    """Return the tree of a level table.

    A node is a name at a level. A name that goes on alone to the next level stays one node; a name
    used for different things (a value `Married` in a group `Married`) is two nodes that are
    spelt alike, so the table keeps exactly the names of the source.
    """
    width = len(labels[0])
    seen: dict[str, int] = {}
    for line, row in zip(lines, labels, strict=True):
        if row[0] in seen:
            same = labels[seen[row[0]]] == row
            raise InputError(
                f"value {row[0]!r} is listed twice{'' if same else ' with different levels'}",
                code="hierarchy-duplicate",
                hint="list each value once",
                file=file,
                line=line,
                value=row[0],
            )
        seen[row[0]] = len(seen)
    nodes: list[dict[str, list[int]]] = [{} for _ in range(width)]  # name → rows below it
    above: list[dict[str, str]] = [{} for _ in range(width)]
    fan: list[dict[str, int]] = [{} for _ in range(width)]
    for place, row in enumerate(labels):
        for level, name in enumerate(row):
            nodes[level].setdefault(name, []).append(place)
            if level + 1 == width:
                continue
            parent = above[level].setdefault(name, row[level + 1])
            if parent != row[level + 1]:
                raise InputError(
                    f"{name!r} on level {level} is in {parent!r} and in {row[level + 1]!r}",
                    code="hierarchy-two-parents",
                    hint="give groups that differ different names",
                    file=file,
                    line=lines[place],
                    value=name,
                )
    for level in range(width - 1):
        for parent in above[level].values():
            fan[level + 1][parent] = fan[level + 1].get(parent, 0) + 1
    return _assemble(labels, nodes, above, fan)


def _assemble(
    labels: Sequence[Sequence[str]],
    nodes: Sequence[Mapping[str, list[int]]],
    above: Sequence[Mapping[str, str]],
    fan: Sequence[Mapping[str, int]],
) -> Levels:
    width = len(labels[0])
    codes: list[str] = []
    parents: list[int] = []
    places: list[dict[str, int]] = [{} for _ in range(width)]
    table = np.empty((len(labels), width), dtype=np.int32)
    # A node that is only the repetition of the one below it is represented by that one — but the root
    # stays a node of its own above a single value.
    merged: list[dict[str, bool]] = [{} for _ in range(width)]
    for level in range(width - 1):
        for name, parent in above[level].items():
            alone = name == parent and fan[level + 1][parent] == 1
            merged[level + 1][parent] = alone and (level + 2 < width or len(labels) > 1)
    for level in range(width - 1, -1, -1):  # from the root down: parents before children
        for name in nodes[level]:
            if merged[level].get(name, False):
                continue
            upper, climb = name, level
            while climb + 1 < width:
                upper, climb = above[climb][upper], climb + 1
                if not merged[climb].get(upper, False):
                    break
            is_root = climb == level or merged[climb].get(upper, False)
            parents.append(-1 if is_root else places[climb][upper])
            places[level][name] = len(codes)
            codes.append(name)
    for level in range(width):
        for name, rows in nodes[level].items():
            lower = level
            while merged[lower].get(name, False):
                lower -= 1
            table[rows, level] = places[lower][name]
    return Levels(tuple(codes), np.array(parents, dtype=np.int32), table)


def shared(counts: Mapping[str, float], minimum: float) -> tuple[list[str], list[str]]:
    """Return the values frequent enough to stand alone, and those that must share one name.

    If the rare ones together still fall short, the next rarest joins them.
    """
    order = sorted(counts, key=lambda value: (counts[value], value))
    rare = [value for value in order if counts[value] < minimum]
    weight = sum(counts[value] for value in rare)
    for value in order[len(rare) :]:
        if not rare or weight >= minimum:
            break
        rare.append(value)
        weight += counts[value]
    joined = set(rare)
    return [value for value in counts if value not in joined], rare


def grid(
    cuts: Sequence[float] | None,
    widths: Sequence[float],
    low: float | None,
    high: float | None,
) -> list[list[float]]:
    """Return the cut points of every level, finest first; each level's are among the finer one's."""
    if cuts is not None:
        finest = [float(cut) for cut in cuts]
        if len(finest) < 2 or any(not math.isfinite(cut) for cut in finest):
            raise InputError(
                "intervals need two finite cut points or more",
                code="hierarchy-intervals",
                hint="write cuts=[0, 18, 65, 100]",
            )
        if any(b <= a for a, b in itertools.pairwise(finest)):
            raise InputError(
                "the cut points do not increase",
                code="hierarchy-intervals",
                hint="sort them and leave repetitions out",
            )
        return [finest]
    if not widths or low is None or high is None or not low < high:
        raise InputError(
            "intervals of equal width need a width, and low below high",
            code="hierarchy-intervals",
            hint="write width=5, low=0, high=100, or cuts=[…]",
        )
    levels: list[list[float]] = []
    for width in widths:
        if not (width > 0 and math.isfinite(width)):
            raise InputError(f"a width of {width} makes no intervals", code="hierarchy-intervals")
        steps = math.ceil((high - low) / width - 1e-9)
        if steps > 1_000_000:
            raise InputError(
                f"a width of {width} makes {steps:,} intervals",
                code="hierarchy-intervals",
                hint="use a larger width",
            )
        edges = [low + step * width for step in range(steps)] + [high]
        if levels and not all(any(abs(e - f) <= 1e-9 * width for f in levels[-1]) for e in edges):
            raise InputError(
                f"intervals of width {width} cut through those of the level below",
                code="hierarchy-intervals",
                hint="make each width a multiple of the one before",
            )
        levels.append(edges)
    return levels


def intervals(
    levels: Sequence[Sequence[float]],
    *,
    open_low: bool,
    open_high: bool,
    labels: Sequence[str] | None,
    values: Sequence[float] | None,
    total: str,
) -> tuple[list[list[str]], list[float]]:
    """Return the level table of intervals (below it the values, if given), and their ends."""
    below = [-math.inf] if open_low else []
    beyond = [math.inf] if open_high else []
    if values is not None:  # open ends only where a number needs one
        below = below if values and values[0] < levels[0][0] else []
        beyond = beyond if values and values[-1] >= levels[0][-1] else []
    ends = [[*below, *edges, *beyond] for edges in levels]
    whole = all(cut == int(cut) for edges in levels for cut in edges)
    names = [
        [interval_name(a, b, whole=whole) for a, b in itertools.pairwise(edges)] for edges in ends
    ]
    if labels is not None:
        if len(labels) != len(names[0]):
            raise InputError(
                f"{len(labels)} labels are given for {len(names[0])} intervals",
                code="hierarchy-intervals",
                hint="give one per interval, the open ones included",
            )
        names[0] = [str(label) for label in labels]
    if values and not ends[0][0] <= values[0] <= values[-1] < ends[0][-1]:
        raise InputError(
            "values lie outside the intervals",
            code="hierarchy-intervals",
            hint="widen low and high, or open the ends",
        )
    starts = [edges[:-1] for edges in ends]
    rows = []
    for point in starts[0] if values is None else values:
        at = [bisect.bisect_right(edges, point) - 1 for edges in starts]
        row = [names[level][place] for level, place in enumerate(at)]
        rows.append([*([] if values is None else [_number(point)]), *row, total])
    return rows, ends[0]


def _number(x: float) -> str:
    return f"{int(x)}" if x == int(x) else repr(float(x))


def interval_name(low: float, high: float, *, whole: bool) -> str:
    """Return how an interval is written: 0-4 for whole numbers, [0, 2.5) otherwise, 65+, <18."""

    def number(x: float) -> str:
        return f"{int(x)}" if x == int(x) else f"{x:g}"

    if low == -math.inf:
        return f"<{number(high)}"
    if high == math.inf:
        return f"{number(low)}+"
    if not whole:
        return f"[{number(low)}, {number(high)})"
    return number(low) if high == low + 1 else f"{number(low)}-{number(high - 1)}"
