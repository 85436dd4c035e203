"""Laws of services: what is declared is what is opened, below the folder of the policy."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from discreet.data.service import Service
from tests.laws import people
from tests.laws.job import its_settings_say_all, tried


def checking_opens_nothing(member: type[Service]) -> None:
    # Gateways ask for a declaration of gaps, which is not what this law is about.
    data = people.dataset(people.frame(1, missing=False))
    before = data.arrow()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for service in tried(member):
            service.check(data)
            assert not list(Path(folder).iterdir()), f"{service} opens something to look"
            assert data.arrow().equals(before), f"{service} changed its input"


def what_it_keeps_lies_below_the_folder(member: type[Service]) -> None:
    data = people.dataset(people.frame(2, missing=False))
    before = data.arrow()
    for service in tried(member):
        with (
            tempfile.TemporaryDirectory() as here,
            tempfile.TemporaryDirectory() as folder,
            contextlib.chdir(here),
        ):
            with contextlib.closing(service.open(data, folder)):
                assert not list(Path(here).iterdir()), f"{service} writes where it was started"
            assert data.arrow().equals(before), f"{service} changed its input"


LAWS = (its_settings_say_all, checking_opens_nothing, what_it_keeps_lies_below_the_folder)


@dataclasses.dataclass(frozen=True)
class _Open(Service):
    def open(self, dataset: Any, folder: Any = ".") -> Any:
        return (Path(folder) / "kept").open("w")


@dataclasses.dataclass(frozen=True)
class Reticent(_Open):
    """Does not record what it was told."""

    name: ClassVar[str] = "reticent"
    by: tuple[str, ...] = ()

    def settings(self) -> dict[str, Any]:
        return {"name": self.name}


@dataclasses.dataclass(frozen=True)
class Hasty(_Open):
    """Opens its ledger to see whether it could."""

    name: ClassVar[str] = "hasty"

    def check(self, dataset: Any) -> None:
        Path("kept").touch()


@dataclasses.dataclass(frozen=True)
class Astray(_Open):
    """Keeps its ledger where the program was started."""

    name: ClassVar[str] = "astray"

    def open(self, dataset: Any, folder: Any = ".") -> Any:
        return Path("kept").open("w")


BROKEN = {
    Reticent: its_settings_say_all,
    Hasty: checking_opens_nothing,
    Astray: what_it_keeps_lies_below_the_folder,
}
