"""Outputs that appear whole or not at all."""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import json
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from discreet.data.room import room_for
from discreet.errors import InputError

try:
    import fcntl
except ImportError:  # elsewhere than on POSIX: what a killed run left is then not removed
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "atomic_directory", "atomic_file", "put_in_place", "when_in_place", "working_folder",
    "written_files",
]  # fmt: skip

#: Files at the top of what we wrote; each lists under "files" what was written with it.
_STATEMENTS = ("record.json", "evidence.json", "map.json")
#: What a release that a ledger records has besides.
_MANIFEST = "manifest.json"
#: Middle of the names of folders that exist while something is written.
_UNDER_WAY = ".discreet-"
#: The hidden folder of a release under way; one that was put aside is for `_recover` alone.
_STAGE = re.compile(r"\..+\.discreet-(?!replaced)[a-z0-9_]{8}")
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux
_HERE = -100  # AT_FDCWD
#: Folders that are being written, and what is to be done when they are in their place.
_STAGES: contextvars.ContextVar[tuple[tuple[Path, list[Callable[[], None]]], ...]] = (
    contextvars.ContextVar("stages", default=())
)
#: Orders the threads of a run that start folders inside a folder of its own.
_INSIDE = threading.Lock()


def _umask() -> int:
    # It can only be read by setting it, for a moment, for all threads: so once, and first.
    current = os.umask(0o077)
    os.umask(current)
    return current


_UMASK = _umask()


@contextlib.contextmanager
def atomic_file(path: str | Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside the target; rename it onto the target if all goes well.

    A private file can be read by its owner alone.

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
        with room_for(target):
            yield temporary
            # Parquet writers may have made a folder of parts where the file was.
            if temporary.is_file():
                with temporary.open("rb") as written:
                    os.fsync(written.fileno())
                temporary.chmod(0o600 if private else 0o666 & ~_UMASK)
            temporary.replace(target)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_directory(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside the target that takes the target's place if all goes well.

    An existing target is replaced whole, in one step: whoever looks, and whenever the process is
    killed, finds the old files or the new ones. It must be empty or hold nothing but what an
    earlier release wrote.

    Raises
    ------
    InputError
        Before anything is done, if the target is a file or holds files that are not ours.
    """
    target = Path(path).absolute()
    _require_parent(target)
    _recover(target)
    _require_replaceable(target)
    with (
        working_folder(f".{target.name}", target.parent) as stage,
        room_for(target),
        _under_way(stage) as later,
    ):
        yield stage
        _require_replaceable(target)
        stage.chmod(0o777 & ~_UMASK)
        put_in_place(stage, target)
    for action in later:
        when_in_place(target, action)


def _require_parent(target: Path) -> None:
    """Refuse a folder that cannot be: below a file, or with a name that no file has."""
    try:
        os.fsencode(target).decode()
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError, ValueError):
        raise InputError(
            "the output folder cannot be made: it lies below a file, or its name is no text",
            code="not-a-folder",
            hint="name a folder in a place where folders can be made",
        ) from None


def put_in_place(stage: Path, target: Path) -> None:
    """Let a complete folder take the place of another, in one step; the old one is then the stage."""
    if target.exists() and any(target.iterdir()):
        _exchange(stage, target)
    else:
        stage.rename(target)  # also onto an empty folder


@contextlib.contextmanager
def _under_way(stage: Path) -> Iterator[list[Callable[[], None]]]:
    """Collect what is to be done when a folder has taken its place."""
    later: list[Callable[[], None]] = []
    token = _STAGES.set((*_STAGES.get(), (stage, later)))
    try:
        yield later
    finally:
        _STAGES.reset(token)


def when_in_place(folder: str | Path, action: Callable[[], None]) -> None:
    """Do something when a folder is where people find it: now, or when the stage it is in appears.

    >>> import tempfile
    >>> done, target = [], Path(tempfile.mkdtemp()) / "out"
    >>> with atomic_directory(target) as stage:
    ...     when_in_place(stage / "part", lambda: done.append(target.exists()))
    ...     done
    []
    >>> done
    [True]
    """
    place = Path(folder).absolute()
    for stage, later in reversed(_STAGES.get()):
        if place.is_relative_to(stage):
            later.append(action)
            return
    action()


@contextlib.contextmanager
def working_folder(prefix: str, parent: str | Path | None = None) -> Iterator[Path]:
    """Yield a folder for this run alone, removed at its end whatever happens.

    A run that is killed cannot remove its own. So each folder is locked while its run lives, and
    the next run with the same prefix removes the folders that nobody holds; the next release beside
    them removes those of every killed release, whatever it would have been called. Without a parent
    it is in the system's folder for temporary files.

    >>> with working_folder("example") as folder:
    ...     oct(folder.stat().st_mode & 0o777)
    '0o700'
    >>> folder.exists()
    False
    """
    place = Path(tempfile.gettempdir() if parent is None else parent)
    place.mkdir(parents=True, exist_ok=True)
    with _locked(place):  # nobody takes the new folder for an abandoned one before it is locked
        _remove_abandoned(place, prefix)
        folder = Path(tempfile.mkdtemp(prefix=prefix + _UNDER_WAY, dir=place))
        handle = _hold(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _hold(folder: Path) -> int | None:
    """Lock a folder for as long as the handle is open; None if somebody else holds it."""
    if fcntl is None:
        return None
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; it orders runs that start together, so nobody waits long for it."""
    if any(stage == folder for stage, _ in _STAGES.get()):
        # The run holds this folder already, so only its own threads can be in each other's way.
        with _INSIDE:
            yield
        return
    handle, end = _hold(folder), time.monotonic() + 2.0
    while handle is None and fcntl is not None and time.monotonic() < end:
        time.sleep(0.01)
        handle = _hold(folder)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _remove_abandoned(place: Path, prefix: str) -> None:
    start = prefix + _UNDER_WAY
    hidden = prefix.startswith(".")  # a release under way: all of them beside the target are ours
    # Prefixes are compared, not matched: they may hold what patterns use.
    for folder in [
        entry
        for entry in place.iterdir()
        if entry.name.startswith(start) or (hidden and _STAGE.fullmatch(entry.name))
    ]:
        handle = _hold(folder)
        if handle is None:
            continue
        try:
            if os.fstat(handle).st_uid == os.geteuid():
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(handle)


def _exchange(stage: Path, target: Path) -> None:
    """Swap two folders; the old files are then in the first."""
    with contextlib.suppress(AttributeError, OSError):  # no such function, no C library
        rename = ctypes.CDLL(None).renameat2
        if rename(_HERE, os.fsencode(stage), _HERE, os.fsencode(target), _EXCHANGE) == 0:
            return
    # File systems without an exchange: between the two steps the target is missing, and `_recover`
    # brings it back if the process is killed just there.
    aside = _aside(target)
    target.rename(aside)
    stage.rename(target)
    aside.rename(stage)


def _aside(target: Path) -> Path:
    return target.with_name(f".{target.name}.discreet-replaced")


def _recover(target: Path) -> None:
    """Bring back a folder that was put aside by a run that was killed before it could replace it."""
    aside = _aside(target)
    if aside.is_dir() and not target.exists():
        aside.rename(target)


def _require_replaceable(target: Path) -> None:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InputError(
            f"{target} exists and is not a folder",
            code="not-a-folder",
            hint="choose another folder",
            file=target,
        )
    if not target.exists():
        return
    foreign = sorted(set(written_files(target)) - _written(target))
    if foreign:
        raise InputError(
            f"the folder holds {len(foreign):,} files that no earlier release wrote, such as "
            f"{foreign[0]!r}",
            code="foreign-files",
            hint="choose another folder, or move those files away",
            file=target,
        )


def written_files(folder: Path) -> list[str]:
    """Return the files below a folder; a release states them, and only those are replaced later."""
    return sorted(
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*")
        if file.is_symlink() or not file.is_dir()
    )


def _written(folder: Path) -> set[str]:
    """Return the files that an earlier release says it wrote into a folder."""
    for name in _STATEMENTS:
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            stated = json.loads((folder / name).read_text(encoding="utf-8"))["files"]
            return {name, _MANIFEST, *map(str, stated)}
    return set()
