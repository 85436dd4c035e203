"""The controller and the programs beside its databases: who they are, and where they listen."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import yaml

from discreet.errors import InputError
from discreet.protocols.joint.declaration import PartyEntry
from discreet.protocols.transport.client import address_of
from discreet.protocols.transport.identity import certificate_pin, read_certificates
from discreet.protocols.transport.session import Agreement
from discreet.registry import Record, build, parameter

__all__ = ["CONTROLLER", "Circle"]

CONTROLLER = "controller"


@dataclasses.dataclass(frozen=True)
class Circle(Record):
    """Who multiplies columns of fragments: the controller, and one program beside each database.

    All of them hold the same file and the certificates beside it.
    """

    relation: str = parameter(help="name of the relation in the databases")
    parties: Mapping[str, PartyEntry] = parameter(
        help="`controller` and, in the order of the databases, the program beside each"
    )
    time_limit: float = parameter(60.0, help="seconds to wait for a party", above=0, high=3600)
    #: Where certificates are found: the folder of the file, never what the file says.
    folder: str = dataclasses.field(default=".", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if CONTROLLER not in self.parties or len(self.parties) < 3:
            raise InputError(
                "a circle needs the controller and two databases or more",
                code="circle",
                hint="name the controller and the program beside each database under parties",
            )
        for name, entry in self.parties.items():
            if entry.address is None:
                raise InputError(
                    f"the party {name!r} has no address", code="circle", hint="write host:port"
                )
            address_of(entry.address)

    @classmethod
    def read(cls, file: str | Path) -> Circle:
        """Return what a file describes."""
        place = Path(file)
        try:
            stated = yaml.safe_load(place.read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError):
            stated = None
        if not isinstance(stated, dict):
            raise InputError(
                "the file does not name the controller and the databases",
                code="circle",
                file=place,
                hint="write relation and parties, each with address and certificate",
            )
        found: Circle = build(cls, stated)
        return dataclasses.replace(found, folder=str(place.resolve().parent))

    @property
    def clouds(self) -> tuple[str, ...]:
        """The programs beside the databases, in their order."""
        return tuple(name for name in self.parties if name != CONTROLLER)

    def certificates(self) -> dict[str, str]:
        """Return the certificate of each party."""
        files = {name: entry.certificate for name, entry in self.parties.items()}
        return read_certificates(self.folder, files)

    def agreement(self) -> Agreement:
        """Return what sessions are bound to: the relation, the addresses and the certificates."""
        pins = {
            name: [self.parties[name].address, certificate_pin(pem)]
            for name, pem in self.certificates().items()
        }
        content = json.dumps([self.relation, list(self.parties), pins], sort_keys=True).encode()
        return Agreement(hashlib.sha256(content).hexdigest(), tuple(sorted(self.parties)))
