"""What was decided about each column, before anything of it leaves.

A role is a decision only when the curator said it. What is guessed, or left out, serves reports;
a release is refused until every column that leaves is decided. A column called `other` leaves as it
is under no promise, so its values are looked at: what tells people apart or names them is refused
unless the curator vouches for the column by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from discreet.data.person_names import named_people
from discreet.data.schema import Column, Role, Schema
from discreet.data.sharing import shared_by_few
from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset
    from discreet.data.infer import Summary

__all__ = ["identifying", "require_decided", "require_harmless", "require_shared_codes"]

#: From this share of different values on, a column tells most people apart.
_NEAR_UNIQUE = 0.5
#: Texts of which so many differ are codes of persons or cases.
_ALL_DIFFER = 0.9
#: Files with fewer values than this repeat few values anyway; only then all must differ.
_MANY = 20
#: What single values look like: words for people, a pattern, and from which share of the values on.
_PATTERNS: tuple[tuple[str, str, float], ...] = (
    ("e-mail addresses", r"[\w.+-]+[@＠﹫][\w-]+\.[A-Za-z]{2,}", 0.0),
    ("e-mail addresses", r"(?i)[\w.+-]+\s*[\[(]\s*at\s*[\])]\s*[\w-]+", 0.0),
    ("web addresses", r"(?i)\b(https?://|www\.)\S+", 0.05),
    ("bank account numbers", r"\b[A-Z]{2}\d{2}[ ]?([A-Z0-9]{4}[ ]?){2,7}[A-Z0-9]{1,4}\b", 0.0),
    ("telephone numbers", r"(\+|\b00)\d{1,3}[ ./()-]*(\d[ ./()-]*){7,11}\b", 0.0),
    ("telephone numbers", r"^\(?0\d{1,4}\)?[ /-]\d{3,}[ -]?\d*$", 0.05),
    ("telephone numbers", r"^\(?\d{3}\)?[ ./-]{0,2}\d{3}[ ./-]\d{3,4}$", 0.05),
    ("telephone numbers", r"^\d{2,3}([ ./-]\d{2,3}){3,4}$", 0.05),
    ("network addresses", r"^\d{1,3}(\.\d{1,3}){3}$", 0.05),
    ("network addresses", r"^[0-9A-Fa-f]{0,4}(:{1,2}[0-9A-Fa-f]{0,4}){3,7}$", 0.05),
    ("network addresses", r"^[0-9A-Fa-f]{2}(-[0-9A-Fa-f]{2}){5}$", 0.05),
    ("card numbers", r"^(\d{4}[ -]){3}\d{1,7}$|^\d{15,19}$", 0.05),
    ("numbers of persons", r"^([A-Z]?\d{8,13}[A-Z]?|\d{3}-\d{2}-\d{4}|\d{6}-\d{4})$", 0.05),
    ("coordinates", r"^[(]?-?\d{1,3}\.\d{3,}[ ]*[,; ][ ]*-?\d{1,3}\.\d{3,}[)]?$", 0.05),
    # Metres of a map: "31T 430959 4581234", "430959 E, 4581234 N", "31TDF 30959 81234".
    (
        "coordinates",
        r"^\d{1,2}[ ]?[C-HJ-NP-X][, ]+\d{6}(\.\d+)?\D{1,4}\d{6,7}(\.\d+)?\D{0,2}$",
        0.05,
    ),
    ("coordinates", r"^\d{6}(\.\d+)?[ ]?m?[ ]?E?[ ]*[,;/ ][ ]*\d{7}(\.\d+)?[ ]?m?[ ]?N?$", 0.05),
    ("coordinates", r"^\d{1,2}[C-HJ-NP-X][ ]?[A-HJ-NP-Z]{2}[ ]?(\d{3,5})[ ]?(\d{3,5})$", 0.05),
    # Codes of places that anybody can look up on a map: "8FH4952X+XX", "952X+XX Barcelona".
    ("coordinates", r"\b[23456789CFGHJMPQRVWX]{4,8}\+[23456789CFGHJMPQRVWX]{2,3}\b", 0.05),
    ("coordinates", r"(?i)\bPOINT\s*Z?M?\s*\(|\d°\s*\d{1,2}\s*['′’]", 0.0),
)
#: Values of so many words are sentences; where this share of them is, the column is free text.
_SENTENCE = r"(\S+\s+){4,}\S+"
_FREE_TEXT = 0.05
#: Different texts that are looked at to see whether they are names of people.
_LOOKED = 2_000


def require_decided(dataset: Dataset, columns: Sequence[str]) -> None:
    """Refuse to release columns about which nothing was decided, with a list to fill in.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> people = read(pd.DataFrame({"age": [20, 30], "x": [1, 2]}), roles={"age": "quasi"})
    >>> require_decided(people, ["age", "x"])
    Traceback (most recent call last):
    discreet.errors.InputError: nobody decided what 1 of the columns that leave is: x; ...
    """
    open_ = [name for name in columns if not dataset.schema[name].decided]
    if not open_:
        return
    from discreet.data.infer import judge, summaries

    guessed = judge(summaries(dataset.engine.project(dataset.relation, open_)))
    roles = {name: guessed[name].role.value for name in open_}
    raise InputError(
        f"nobody decided what {len(open_)} of the columns that leave "
        f"{'is' if len(open_) == 1 else 'are'}: {', '.join(open_)}",
        code="undecided-columns",
        hint=_to_fill_in(roles),
        columns=open_,
        suggested=roles,
    )


def _to_fill_in(roles: Mapping[str, str]) -> str:
    """Return suggested roles as they are written in Python, in a policy and on the command line."""
    import shlex

    typed = " ".join(f"--role {shlex.quote(f'{name}={role}')}" for name, role in roles.items())
    written = ", ".join(f"{json.dumps(n, ensure_ascii=False)}: {role}" for n, role in roles.items())
    return (
        "decide on each (identifier: never leaves; quasi: others may know it; confidential: to be "
        "protected; other: may leave as it is); these are guesses to correct\n"
        f"  Python:       roles={json.dumps(dict(roles), ensure_ascii=False)}\n"
        f"  policy:       roles: {{{written}}}\n"
        f"  command line: {typed}\n"
        "or say what all the rest is, such as rest='identifier' (none of it leaves)"
    )


def require_harmless(
    dataset: Dataset, columns: Sequence[str], *, changed: Sequence[str] = ()
) -> None:
    """Refuse columns that would leave as they are and hold values that tell who people are.

    Of columns called `other` none may be near-unique; no column at all may hold what looks like
    names of people in text, unless it is vouched for. Texts of `changed` columns leave too, coarser
    or in another record; they may name nobody unless their values are declared to be public.
    """
    looked = [name for name in columns if not dataset.schema[name].vouched]
    moved = [name for name in changed if not _is_public(dataset.schema[name])]
    found = {**identifying(dataset, looked), **_naming(dataset, moved)}
    for name, what in found.items():
        role = dataset.schema[name].role
        raise InputError(
            f"column {name!r} would leave as it is, and its values {what}"
            if name in looked
            else f"values of column {name!r} would leave, and they {what}",
            code="identifying-values",
            hint=f"give it the role {'quasi or ' if role is Role.OTHER else ''}identifier, mask it, "
            f"or vouch for it by name: vouch=[{name!r}]",
            column=name,
        )


def require_shared_codes(schema: Schema, name: str, codes: Sequence[str], records: int) -> None:
    """Refuse to count by a column that nobody decided on and whose codes tell who people are.

    Naming a column to count by is a decision about it, so its codes are looked at as those of
    columns called `other` are.

    >>> from discreet.data.schema import Column
    >>> schema = Schema((Column("contact", decided=False),))
    >>> require_shared_codes(schema, "contact", ["ana@example.org"], 9)
    Traceback (most recent call last):
    discreet.errors.InputError: column 'contact' would be counted by, and its values hold what ...
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = schema[name]
    if column.decided or column.vouched or column.hierarchies or not codes:
        return
    texts = pa.array([str(code) for code in codes])
    hits = [
        int(pc.sum(pc.match_substring_regex(texts, pattern)).as_py() or 0)
        for _, pattern, _ in _PATTERNS
    ]
    what = _worst([*hits, 0], len(codes))
    if what is None and len(codes) >= max(_MANY, _NEAR_UNIQUE * records):
        what = f"are near-unique, {len(codes):,} in {records:,} records: they tell people apart"
    if what is not None:
        raise InputError(
            f"column {name!r} would be counted by, and its values {what}",
            code="identifying-values",
            hint=f"say what it is, such as roles={{{name!r}: 'quasi'}}, give it a hierarchy, or "
            f"vouch for it by name: vouch=[{name!r}]",
            column=name,
        )


def identifying(
    dataset: Dataset, columns: Sequence[str], known: Sequence[Summary] | None = None
) -> dict[str, str]:
    """Return the columns whose values tell who people are, and in words what they look like.

    `known` are the columns' summaries, where they are at hand.
    """
    from discreet.data.infer import is_place, summaries

    if not columns or not len(dataset):
        return {}
    rows = dataset.engine.project(dataset.relation, list(columns))
    known = summaries(rows) if known is None else known
    texts = {s.name: s for s in known if _is_text(rows.schema.field(s.name).type)}
    seen = _patterns(dataset, list(texts.values()))
    found: dict[str, str] = {}
    for summary in known:
        is_other = dataset.schema[summary.name].role is Role.OTHER
        if summary.name in seen:
            found[summary.name] = seen[summary.name]
        elif is_other and _is_near_unique(summary):
            share = f"{summary.uniqueness:.0%} of them different"
            found[summary.name] = f"are near-unique, {share}: they tell people apart"
        elif is_other and (few := shared_by_few(dataset, summary)):
            found[summary.name] = few
        elif summary.name in texts and _is_code(summary):
            found[summary.name] = "are codes that nearly all differ: they tell people apart"
        elif is_place(summary):
            found[summary.name] = "are coordinates, as its name says"
        elif is_other and _is_number_of_somebody(summary):
            found[summary.name] = (
                "are numbers of 9 to 13 digits, like those of persons and telephones"
            )
    return found


def _is_public(column: Column) -> bool:
    """Whether somebody said which values the column can have, or vouched for them."""
    return column.vouched or bool(column.hierarchies) or column.domain is not None


def _naming(dataset: Dataset, columns: Sequence[str]) -> dict[str, str]:
    """Return the columns whose texts name people, and in words what they look like."""
    from discreet.data.infer import summaries

    texts = [n for n in columns if _is_text(dataset.relation.schema.field(n).type)]
    if not texts or not len(dataset):
        return {}
    return _patterns(dataset, summaries(dataset.engine.project(dataset.relation, texts)))


def _is_near_unique(summary: Summary) -> bool:
    if summary.present < 2 or summary.kind in ("boolean", "nested"):
        return False
    least = _NEAR_UNIQUE if summary.present >= _MANY else 1.0
    return summary.distinct > 1 and summary.uniqueness >= least


def _is_code(summary: Summary) -> bool:
    """Whether texts are nearly all different, as numbers of cases are, whatever their role."""
    return summary.present >= _MANY and summary.uniqueness >= _ALL_DIFFER


def _is_number_of_somebody(summary: Summary) -> bool:
    """Whether whole numbers have as many digits each as persons' and telephone numbers have."""
    ends = (summary.low, summary.high)
    if summary.kind not in ("integer", "number") or summary.distinct < 2:
        return False
    if not all(isinstance(end, int | float) and end == end // 1 and end > 0 for end in ends):
        return False
    low, high = (len(str(int(end))) for end in ends)
    return low == high and 9 <= low <= 13


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    texts = (pa.types.is_string, pa.types.is_large_string)
    blobs = (pa.types.is_binary, pa.types.is_large_binary)  # texts, as some writers keep them
    return any(is_kind(kind) for is_kind in (*texts, *blobs))


def _patterns(dataset: Dataset, texts: Sequence[Summary]) -> dict[str, str]:
    """Return what texts hold that names people, by looking at every value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = [*(pattern for _, pattern, _ in _PATTERNS), _SENTENCE]
    hits = {summary.name: [0] * len(kinds) for summary in texts}
    different: dict[str, set[str]] = {summary.name: set() for summary in texts}
    for name, given, counts in _columns(dataset, texts):
        column = _plain(given)
        if len(different[name]) < _LOOKED:
            different[name].update(str(text) for text in column[:_LOOKED].to_pylist() if text)
        for place, pattern in enumerate(kinds):
            met = pc.match_substring_regex(column, pattern)
            if counts is None:
                hits[name][place] += int(pc.sum(met).as_py() or 0)
            else:
                times = pc.if_else(pc.fill_null(met, False), counts, pa.scalar(0, counts.type))
                hits[name][place] += int(pc.sum(times).as_py() or 0)
    found: dict[str, str] = {}
    for summary in texts:
        what = _worst(hits[summary.name], max(summary.present, 1))
        if what is None and not _is_public(dataset.schema[summary.name]):
            what = named_people(summary.name, different[summary.name])
        if what is not None:
            found[summary.name] = what
    return found


def _columns(
    dataset: Dataset, texts: Sequence[Summary]
) -> Iterator[tuple[str, pa.Array, pa.Array | None]]:
    """Give the texts of columns: each once with its number, or all, piece by piece, if they differ."""
    from discreet.data.infer import MANY_TEXTS

    many: list[str] = []
    for summary in texts:
        few = 0 < summary.distinct <= min(summary.present // 2, MANY_TEXTS)
        if summary.values is None and not few:
            many.append(summary.name)
            continue
        counted = summary.values
        if counted is None:
            counted = dataset.engine.frequencies(dataset.relation, [summary.name])
        values, counts = (counted.column(place).combine_chunks() for place in (0, 1))
        yield summary.name, values, counts
    if not many:
        return
    rows = dataset.engine.project(dataset.relation, many)
    for batch in dataset.engine.batches(rows):
        for name in many:
            yield name, batch.column(batch.schema.get_field_index(name)), None


#: Characters of no width, by which an address would look like none.
_INVISIBLE = "[\u00ad\u200b-\u200f\u2060\ufeff]"


def _plain(texts: pa.Array) -> pa.Array:
    """Return texts as a reader sees them: wide letters and digits as plain ones, nothing hidden."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        return texts
    wide = pc.utf8_normalize(texts, form="NFKC")
    return pc.replace_substring_regex(wide, _INVISIBLE, "")


def _worst(hits: Sequence[int], known: int) -> str | None:
    for (word, _, least), count in zip(_PATTERNS, hits, strict=False):
        if count and count / known >= least:
            return f"hold what looks like {word} ({count:,} of {known:,} values)"
    if hits[-1] / known >= _FREE_TEXT:
        return f"are free text ({hits[-1]:,} of {known:,} values are sentences)"
    return None
