"""What a policy may touch: files of its own folder, and what the caller allows besides.

A policy may come from a stranger. Every file, database and ledger that it names passes through
here before anything is opened. Files must lie in the policy's folder, symbolic links followed;
other files, and every database on a network, must be allowed by the caller. Credentials come from
the caller or stand in the policy itself, never from the environment.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlsplit

from discreet.app.policy.document import Place, parse
from discreet.app.policy.load import load_policy, misnamed, read_policy
from discreet.app.policy.model import Policy
from discreet.data.addresses import database_file, duckdb_address
from discreet.errors import DiscreetError, InputError
from discreet.registry import Declaration, is_address

__all__ = ["Access", "permitted_policy"]

_Declared = TypeVar("_Declared", bound=Declaration)
#: What the policy may say of a PostgreSQL server; the rest (such as sslmode) is the caller's.
_OF_POLICY = {"host", "port", "dbname", "user", "password"}


@dataclasses.dataclass(frozen=True)
class Access:
    """What the caller allows a policy to touch.

    Parameters
    ----------
    allow
        Files, folders with all below them, and addresses of databases. An address allows a server
        (`postgresql://host:port`), or one database of it (`postgresql://host:port/database`); user,
        password and settings of libpq in it are used for the connection.
    password
        Password for PostgreSQL servers that are allowed without one.

    Examples
    --------
    >>> Access(Path("/policies")).file("people.csv", "read")
    '/policies/people.csv'
    >>> Access(Path("/policies")).file("../people.csv", "read")
    Traceback (most recent call last):
    discreet.errors.InputError: '../people.csv' lies outside the policy's folder; ...
    """

    folder: Path
    allow: tuple[str, ...] = ()
    password: str | None = dataclasses.field(default=None, repr=False)

    def of(self, declared: _Declared, name: str = "") -> _Declared:
        """Return a declaration with absolute paths and complete addresses, all of them allowed.

        So is whatever it writes and reads below and beside those: a link there may lead anywhere.
        """
        made = declared.with_files(self.file)
        for place in made.further_files(name):
            self._require_inside(place, str(place), said=name or str(place))
        return made

    def file(self, file: str, use: str) -> str:
        """Return a file or address of the policy as it is to be opened, or refuse it."""
        if use == "host":
            return self._host(file)
        if is_address(file):
            return self._address(file, use)
        if use == "write":
            return _output(file)
        if use == "head" and file.startswith("command:"):
            return self._command(file)
        if use == "engine" or (use == "ledger" and file == ":memory:"):
            return file  # no file; engines that do not exist are told where they are opened
        return str(self._path(file))

    def _host(self, url: str) -> str:
        """Return the address of a service that a policy names, if the caller allowed its host."""
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(url)).lower()
        if not any(given.lower().rstrip("/") in (origin, url.lower()) for given in self.allow):
            _refuse_address(url, origin)
        return url

    def _command(self, said: str) -> str:
        """Return a program that a policy wants to run; a stranger's must not run unasked."""
        if said not in self.allow:
            raise InputError(
                "the policy wants to run a program",
                code="not-allowed",
                hint=f"if you trust the policy, allow it: --allow {shlex.quote(said)}",
                said=said,
            )
        return said

    def _path(self, file: str, *, said: str | None = None) -> Path:
        said = said or file
        place = self.folder.absolute() / file
        try:
            if any(len(os.fsencode(part)) > 255 for part in place.parts) or "\0" in file:
                raise ValueError
            place.resolve()
        except (OSError, RuntimeError, ValueError):
            raise InputError(
                f"{file[:80]!r} cannot be the name of a file",
                code="bad-path",
                hint="write a path that starts in the policy's folder",
                said=said,
            ) from None
        if any(letter in file for letter in "*?["):
            raise InputError(
                f"{file[:80]!r} is a pattern; a policy names single files",
                code="bad-path",
                hint="write the name without *, ? and [",
                said=said,
            )
        self._require_inside(place, file, said=said)
        return place

    def _require_inside(self, place: Path, file: str, *, said: str) -> None:
        """Refuse a path that leads out of what the policy may use, symbolic links followed."""
        try:
            found = place.resolve()
            roots = [self.folder.resolve(), *(Path(a).resolve() for a in self._paths())]
        except (OSError, RuntimeError):  # links that lead to each other
            found, roots = place, []
        if not any(found.is_relative_to(root) for root in roots):
            raise InputError(
                f"{file!r} lies outside the policy's folder",
                code="not-allowed",
                hint=f"if you trust the policy, allow it: --allow {file}",
                said=said,
            )

    def _paths(self) -> Iterable[str]:
        return (given for given in self.allow if not is_address(given))

    def _address(self, address: str, use: str) -> str:
        scheme = address.partition("://")[0].lower()
        table = address.partition("#")[2]
        if scheme == "duckdb":
            return self._duckdb(address, table, use)
        allowed = [given for given in self.allow if is_address(given)]
        if scheme in ("postgresql", "postgres"):
            return self._postgres(address, table, allowed)
        return self._spark(address, table, allowed)

    def _spark(self, address: str, table: str, allowed: Iterable[str]) -> str:
        """Return an address of Spark whose master and options the caller allowed, and its files too."""
        from discreet.data.engines.spark_address import location

        server = _server(address)
        given = {one for one in allowed if _server(one) == server}
        if not given:
            _refuse_address(address, server)
        files = location(table) if table else None
        if files is not None and address not in given:
            folder = files.folder
            if folder is None:
                _refuse_address(address, address)
            self._path(str(folder), said=address)
        return address

    def _duckdb(self, address: str, table: str, use: str) -> str:
        file = database_file(address)
        if file is None:
            return "duckdb://" + (f"#{table}" if table else "")
        place = self._path(file, said=address)
        is_trusted = any(place.resolve().is_relative_to(Path(a).resolve()) for a in self._paths())
        if use != "read" and not is_trusted:
            _refuse_address(address, file)
        if not place.is_file():  # DuckDB would make a new one
            raise InputError(
                f"there is no database {file!r}",
                code="no-file",
                hint="check the path",
                said=address,
            )
        # Views in a stranger's database can read any file that DuckDB may read.
        settings = "" if is_trusted else "access_mode=read_only&enable_external_access=false"
        return duckdb_address(place, table, settings=settings)

    def _postgres(self, address: str, table: str, allowed: Iterable[str]) -> str:
        from discreet.data.engines.postgres import parameters, sealed

        said = parameters(address)
        extra = sorted(set(said) - _OF_POLICY)
        # Those of the address that is allowed are the caller's and may be anything.
        for given in [parameters(one) for one in allowed if one.lower().startswith("postgres")]:
            if not extra and _is_same_server(said, given):
                known = {"password": self.password} if self.password is not None else {}
                return sealed({**said, **known, **given}, table)
        if extra:
            raise InputError(
                f"a policy may not set {extra[0]} of a connection",
                code="not-allowed",
                hint="leave it out, or give it in the address you allow: --allow postgresql://…",
                said=address,
            )
        host = said.get("host", "")
        port = f":{said['port']}" if "port" in said else ""
        return _refuse_address(address, f"postgresql://{host}{port}/{said.get('dbname', '')}")


def _server(address: str) -> str:
    """Return an address without its table; hosts are the same in any case, folders are not."""
    server, question, options = address.partition("#")[0].partition("?")
    return server.rstrip("/").lower() + question + options


def _is_same_server(said: Mapping[str, str], given: Mapping[str, str]) -> bool:
    """Whether an allowed address covers what a policy says."""
    if said.get("host", "").lower() != given.get("host", "").lower():
        return False
    if said.get("port", "5432") != given.get("port", "5432"):
        return False
    return all(
        name not in given or said.get(name, given[name]) == given[name]
        for name in ("dbname", "user")
    )


def _refuse_address(address: str, shown: str) -> NoReturn:
    raise InputError(
        f"the policy wants a connection to {shown}",
        code="not-allowed",
        hint=f"if you trust the policy, allow it: --allow {shown}",
        said=address,
    )


def _output(file: str) -> str:
    """Return a file that a policy writes: a name inside the folder of reports."""
    wrong = misnamed(file, "reports", {})
    if wrong:
        raise InputError(
            f"{file[:80]!r} cannot be written: {wrong}",
            code="not-allowed",
            hint="write a plain name; the file appears in the folder `reports` of the output",
            said=file,
        )
    return file


def permitted_policy(
    path: str | Path,
    *,
    folder: str | Path | None = None,
    allow: Iterable[str | Path] = (),
    password: str | None = None,
) -> tuple[Policy, Access]:
    """Read a policy, and refuse it if it names what the caller did not allow.

    Its paths are absolute then, and its addresses complete. `folder` is where relative paths
    start, by default where the policy is.
    """
    policy = load_policy(path)
    place = Path(path).parent if folder is None else Path(folder)
    access = Access(place, tuple(map(str, allow)), password)
    try:
        # An analyst or an independent node of a joint computation has no data of its own.
        changes: dict[str, Any] = {"data": access.of(policy.data)} if policy.data.source else {}
        if policy.joint is not None:
            for entry in policy.joint.parties.values():
                access.file(entry.certificate, "read")
            changes["joint"] = dataclasses.replace(policy.joint, folder=str(place))
        if policy.search is not None:
            changes["search"] = access.of(policy.search)
        for section in ("releases", "reports", "gateways", "retrieval"):
            listed = getattr(policy, section)
            changes[section] = {name: access.of(entry, name) for name, entry in listed.items()}
        files = {
            name: access.file(file, "read")
            for name in ("certificate", "key")
            if (file := getattr(policy.server, name)) is not None
        }
        changes["server"] = policy.server.model_copy(update=files)
    except DiscreetError as error:
        said = error.facts.pop("said", None)
        error.file = error.file or str(path)
        error.line = error.line or _line_of(said, path)
        raise
    return policy.model_copy(update=changes), access


def _line_of(said: Any, path: str | Path) -> int | None:
    """Return the line on which a policy says something. Any: a text, or nothing."""
    document = parse(read_policy(path), file=path)

    def at(place: Place) -> Any:
        value = document.data
        for step in place:
            value = value[step]
        return value

    for place, (line, _) in document.positions.items():
        if said is not None and at(place) == said:
            return line
    return None
