"""Synthetic files as they were published, held against what the evidence beside them says."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.data.dataset import as_dataset
from discreet.errors import InputError
from discreet.microdata.columns import Places
from discreet.microdata.copies import record_numbers
from discreet.registry import members
from discreet.verification.manifest import check_manifest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Published", "published"]

#: The log of 1 in a million: two files by chance.
_CHANCE = float(np.log(1e-6))


@dataclasses.dataclass(frozen=True, eq=False)
class Published:
    """Files of one release: their records, the rule that combines them, the original's size."""

    tables: list[pa.Table]
    rule: str | None = None
    originals: int | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class _File:
    """One file, and what the evidence beside it says of the release and of the file."""

    name: str
    table: pa.Table
    settings: Mapping[str, Any]
    promise: Mapping[str, Any]
    #: Where the evidence lies, if it is about this file.
    folder: Path | None = None

    @property
    def origin(self) -> tuple[Any, ...]:
        """What files of one release have in common; the rule first."""
        return tuple(self.settings.get(key) for key in ("inference", "methods", "original records"))


def published(files: Any) -> Published:
    """Open files that are to be combined; each must be another file of the same release.

    Any: a folder, a file, a frame, or a list of files or frames.
    """
    folder = Path(files) if isinstance(files, str | Path) else None
    given = files
    if folder is not None and folder.is_dir():
        given = [folder / name for name in _promises(_evidence(folder))]
    several = list(given) if isinstance(given, list | tuple) else [given]
    if not several:
        raise InputError("no file is given", code="missing-file")
    opened = [_opened(one, place) for place, one in enumerate(several, start=1)]
    for file in opened:
        _require_whole(file)
    for place in dict.fromkeys(file.folder for file in opened if file.folder is not None):
        _require_listed(place)
    _require_own_rule(opened[0].settings)
    _require_one_release(opened)
    _require_different(opened)
    rule, _, originals = opened[0].origin
    return Published([file.table for file in opened], rule, originals)


def _opened(one: Any, place: int) -> _File:
    # Any: a path or a frame.
    table = as_dataset(one).arrow()
    if not isinstance(one, str | Path):
        return _File(f"file {place}", table, {}, {})
    stated = _evidence(Path(one).parent)
    promise = _promises(stated).get(Path(one).name)
    if promise is None:  # the evidence is about other files
        return _File(Path(one).name, table, {}, {})
    settings = stated.get("settings", {})
    return _File(Path(one).name, table, settings, promise, Path(one).parent)


def _require_whole(file: _File) -> None:
    """Raise an InputError where a file is not what its evidence says."""
    records = file.promise.get("records", file.table.num_rows)
    columns = file.promise.get("columns", file.table.column_names)
    if records != file.table.num_rows or list(columns) != file.table.column_names:
        raise InputError(
            f"{file.name} has {file.table.num_rows:,} records and the columns "
            f"{', '.join(file.table.column_names)}, but was published with {records:,} and "
            f"{', '.join(columns)}",
            code="changed-file",
            hint="use the file as it was published; give frames and kind=… to analyse a part of it",
        )


def _require_listed(folder: Path) -> None:
    """Raise an InputError where a manifest stands beside the files, and they are not what it lists."""
    for finding in check_manifest(folder):
        if not finding.holds:
            raise InputError(
                f"the files are not as their manifest lists them: {finding.found}",
                code="changed-file",
                hint="use the folder as it was published",
            )


def _require_own_rule(settings: Mapping[str, Any]) -> None:
    """Raise an InputError where evidence states another rule than that of its method."""
    kinds = members("synthesizer")
    stated = next(iter(settings.get("methods") or ()), None)
    if not isinstance(stated, Mapping) or stated.get("name") not in kinds:
        return
    kind = kinds[stated["name"]]
    method = object.__new__(kind)  # parameters as they were accepted once
    for name, value in stated.items():
        if name != "name":
            object.__setattr__(method, name, value)
    if settings.get("inference") != method.inference:  # type: ignore[attr-defined]  # of this family
        raise InputError(
            f"the evidence states the rule {settings.get('inference')!r}, which is not that of its "
            f"method, {stated['name']}",
            code="malformed-evidence",
            hint="use the folder as it was published",
        )


def _require_one_release(files: Sequence[_File]) -> None:
    first = files[0]
    for file in files[1:]:
        if file.origin != first.origin:
            words = [
                f"{one.name} says the rule {one.origin[0]!r}"
                if one.settings
                else f"{one.name} says none"
                for one in (first, file)
            ]
            raise InputError(
                f"the files come from different releases: {words[0]}, {words[1]}, and their methods "
                "or originals differ",
                code="mixed-files",
                hint="combine the files of one release: give its folder",
            )
        if file.table.num_rows != first.table.num_rows:
            raise InputError(
                f"{file.name} has {file.table.num_rows:,} records and {first.name} "
                f"{first.table.num_rows:,}; the files of one release have as many",
                code="mixed-files",
                hint="combine the files of one release: give its folder",
            )
        if set(file.table.column_names) != set(first.table.column_names):
            raise InputError(
                f"{file.name} has other columns than {first.name}",
                code="mixed-files",
                hint="combine the files of one release: give its folder",
            )


def _require_different(files: Sequence[_File]) -> None:
    """Raise an InputError where a file comes twice: it tells nothing of how files vary.

    Also in another order, unless files of so few different records may be equal by chance.
    """
    names = files[0].table.column_names
    numbers = record_numbers(*(file.table for file in files), names=names)
    seen: dict[bytes, _File] = {}
    for place, (file, own) in enumerate(zip(files, numbers, strict=True), start=1):
        keys = [b"in order" + own.tobytes()] if own.size else []
        if _chance(np.unique(own, return_counts=True)[1]) < _CHANCE:
            keys.append(np.sort(own).tobytes())
        for key in keys:
            other = seen.setdefault(key, file)
            if other is not file:
                raise InputError(
                    f"file {place} ({file.name}) holds the same records as {other.name}",
                    code="repeated-file",
                    hint="give every file once",
                )


def _chance(counts: Places) -> float:
    """Return the log of the probability that as many records by lot have exactly these counts."""
    from scipy.special import gammaln

    size = counts.sum()
    told = gammaln(size + 1) - gammaln(counts + 1).sum() + (counts * np.log(counts / size)).sum()
    return float(told)


def _promises(stated: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return what the evidence says of every file of records, by its name."""
    return {p["file"]: p for p in stated.get("promises", ()) if p.get("kind") == "records"}


def _evidence(folder: Path) -> dict[str, Any]:
    place = folder / "evidence.json"
    if not place.is_file():
        return {}
    try:
        stated = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(
            "the evidence beside the files cannot be read", code="malformed-evidence"
        ) from None
    return stated if isinstance(stated, dict) and stated.get("kind") == "synthetic" else {}
