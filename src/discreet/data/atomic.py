"""Outputs that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["atomic_directory", "atomic_file"]


def _umask() -> int:
    # It can only be read by setting it, for a moment, for all threads: so once, and first.
    current = os.umask(0o077)
    os.umask(current)
    return current


_UMASK = _umask()


@contextlib.contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside the target; rename it onto the target if all goes well.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "out.csv"
    >>> with atomic_file(target) as temporary:
    ...     _ = temporary.write_text("a,b")
    >>> target.read_text()
    'a,b'
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # The suffix stays: writers choose the format by it.
    handle, name = tempfile.mkstemp(
        prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent
    )
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # Parquet writers may have made a folder of parts where the file was.
        if temporary.is_file():
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.chmod(0o666 & ~_UMASK)
        temporary.replace(target)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_directory(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside the target; when all goes well its files replace the target's.

    The target folder may exist: files of the same name are replaced, others stay.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield temporary
        if not target.exists():
            temporary.chmod(0o777 & ~_UMASK)
            temporary.replace(target)
            return
        for file in sorted(p for p in temporary.rglob("*") if p.is_file()):
            place = target / file.relative_to(temporary)
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
