"""Folders of Parquet files that Spark's workers write, each part by itself, side by side.

Nothing goes through this process: the workers must see the folder, and may write there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.data.atomic import put_in_place, working_folder
from discreet.errors import EngineError, InputError

__all__ = ["replace_folder", "write_parts"]

_OPTIONS = {
    "compression": "zstd",
    # No file says that the folder is complete: it appears when it is.
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


def write_parts(frame: Any, folder: Path) -> None:
    """Let the workers write a frame into a new folder. Any: a frame of classic Spark or Connect."""
    frame.write.options(**_OPTIONS).parquet(folder.absolute().as_uri())
    if not folder.is_dir():
        raise EngineError(
            "the workers wrote into another folder than this process sees",
            code="cannot-write",
            hint="choose a folder that this machine and all workers share",
            file=folder,
        )
    for file in sorted(folder.iterdir()):
        if not file.name.startswith("part-"):
            file.unlink()  # checksums of the file system, and marks of a complete folder
    # The workers name each part after the job; the number alone keeps their order.
    for place, file in enumerate(sorted(folder.iterdir())):
        file.rename(folder / f"part-{place:05}.parquet")


def replace_folder(frame: Any, target: Path) -> None:
    """Let the workers write a frame to a folder that takes the target's place when complete.

    Any: a frame of classic Spark or of Connect.
    """
    target = target.absolute()
    _require_parts(target)
    try:
        with working_folder(f".{target.name}", target.parent) as stage:
            write_parts(frame, stage / "parts")
            put_in_place(stage / "parts", target)
    except OSError as error:
        raise EngineError(
            f"the folder cannot be written: {error.strerror or type(error).__name__}",
            code="cannot-write",
            file=target,
        ) from None


def _require_parts(target: Path) -> None:
    """Refuse to replace anything but an earlier folder of parts."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InputError(
            f"{target} exists and is not a folder",
            code="not-a-folder",
            hint="choose another name; the workers write a folder of parts",
            file=target,
        )
    foreign = [
        file.name
        for file in (target.iterdir() if target.exists() else ())
        if file.is_dir() or not file.name.lstrip("._").startswith(("part-", "SUCCESS"))
    ]
    if foreign:
        raise InputError(
            f"the folder holds files that are no parts of a table, such as {foreign[0]!r}",
            code="foreign-files",
            hint="choose another folder, or move those files away",
            file=target,
        )
