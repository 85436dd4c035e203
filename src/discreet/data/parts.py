"""Several files as one, and files inside archives: which plain files a path stands for.

A folder stands for all its files of one format, a pattern for the files it fits. A link that leads
out of the folder is refused: whoever allowed the folder did not allow what it points to.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import shutil
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from discreet.data.files import COMPRESSED, FORMATS, file_format, require_file
from discreet.errors import InputError

__all__ = ["is_several", "part_files", "plain_files"]

#: An archive may hold so many times its own size.
_RATIO = 200
_OPENERS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def is_several(path: Path) -> bool:
    """Whether a path stands for several files: a folder, or a pattern where no file is called so."""
    return path.is_dir() or (not path.exists() and any(mark in path.name for mark in "*?["))


def part_files(path: Path, format: str | None = None) -> list[Path]:
    """Return the files that a folder or a pattern stands for, by name.

    Files whose names begin with a dot or an underscore are left out, as engines do.
    """
    folder = path if path.is_dir() else path.parent
    found = path.rglob("*") if path.is_dir() else folder.glob(path.name)
    files = sorted(
        file
        for file in found
        if file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    )
    kinds = Counter(kind for file in files if (kind := _kind(file)) is not None)
    if path.is_dir() and len(kinds) > 1 and format is None:
        shown = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        raise InputError(
            f"the folder holds files of several formats: {shown}",
            code="several-formats",
            hint=f"say which to read, such as format={kinds.most_common(1)[0][0]!r}",
            file=path,
        )
    if path.is_dir():
        wanted = format or next(iter(kinds), None)
        files = [file for file in files if _kind(file) == wanted]
    if not files:
        raise InputError(
            "there is no file of records in the folder"
            if path.is_dir()
            else "the pattern fits no file",
            code="no-file",
            hint="check the name; files of records end with " + ", ".join(FORMATS),
            file=path,
        )
    root = folder.resolve()
    for file in files:
        if not file.resolve().is_relative_to(root):
            raise InputError(
                "the folder holds a link that leads out of it",
                code="not-allowed",
                hint="copy the file there, or name it by itself",
                file=file,
            )
    return files


def _kind(file: Path) -> str | None:
    try:
        return file_format(file)
    except InputError:
        return None


@contextlib.contextmanager
def plain_files(files: Sequence[Path], *, always: int = 1 << 28) -> Iterator[list[Path]]:
    """Yield the files, those in archives unpacked for as long as they are read.

    An archive that holds far more than its own size, and more than `always` bytes, is refused.
    """
    packed = [file for file in files if file.suffix.lower() in COMPRESSED]
    if not packed:
        yield list(files)
        return
    with tempfile.TemporaryDirectory(prefix="discreet-") as folder:
        found: list[Path] = []
        for place, file in enumerate(files):
            if file not in packed:
                found.append(file)
                continue
            inner = Path(folder) / str(place)
            inner.mkdir()
            found += _unpacked(require_file(file), inner, always)
        yield found


def _unpacked(file: Path, folder: Path, always: int) -> list[Path]:
    limit = max(always, file.stat().st_size * _RATIO)
    limit = min(limit, shutil.disk_usage(folder).free // 2)
    try:
        if file.suffix.lower() == ".zip":
            return _unzipped(file, folder, limit)
        target = folder / file.with_suffix("").name
        with _OPENERS[file.suffix.lower()](file) as source:
            _copy(source, target, limit, file)
    except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error, RuntimeError):
        raise InputError(
            f"the archive cannot be unpacked as {file.suffix.lower()}: damaged, locked or no archive",
            code="bad-file",
            hint="unpack it yourself and give the file in it",
            file=file,
        ) from None
    return [target]


def _unzipped(file: Path, folder: Path, limit: int) -> list[Path]:
    """Unpack the files of records of a ZIP archive; the names in it never become paths."""
    found = []
    with zipfile.ZipFile(file) as archive:
        members = [
            one
            for one in archive.infolist()
            if not one.is_dir()
            and not Path(one.filename).name.startswith((".", "_"))
            and not one.filename.startswith("__MACOSX")
        ]
        known = [one for one in members if Path(one.filename).suffix.lower() in FORMATS]
        kinds = {FORMATS[Path(one.filename).suffix.lower()] for one in known}
        if not known or len(kinds) > 1:
            raise InputError(
                "the archive holds files of several formats"
                if known
                else "the archive holds no file of records",
                code="several-formats" if known else "no-file",
                hint="unpack it and give the file to read",
                file=file,
            )
        for place, one in enumerate(sorted(known, key=lambda item: item.filename)):
            suffix = Path(one.filename).suffix.lower()
            target = folder / f"{place:06}{suffix}"
            with archive.open(one) as source:
                limit -= _copy(source, target, limit, file)
            found.append(target)
    return found


def _copy(source: IO[bytes], target: Path, limit: int, file: Path) -> int:
    """Copy what an archive holds, at most so many bytes; return how many."""
    size = 0
    with target.open("wb") as stream:
        while block := source.read(1 << 20):
            size += len(block)
            if size > limit:
                raise InputError(
                    f"the archive holds more than {limit:,} bytes",
                    code="too-large",
                    hint="unpack it yourself if you trust it",
                    file=file,
                )
            stream.write(block)
    return size
