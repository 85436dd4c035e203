"""All parties as processes on this machine, for demonstrations and tests."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from discreet.audit.rules import Rule
from discreet.data.dataset import Dataset, as_dataset
from discreet.errors import EngineError, InputError
from discreet.protocols.arithmetic.fixed_point import EXACT
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.transport.identity import Identity
from discreet.registry import build
from discreet.report import plain

__all__ = ["Parties", "await_listening", "free_ports", "launch", "start", "stop"]

_PATIENCE = 60.0
_NODES = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Parties:
    """Processes of one joint computation and the folder that holds their files."""

    policy: JointPolicy
    folder: Path
    processes: dict[str, subprocess.Popen[bytes]]

    @property
    def ledgers(self) -> dict[str, Path]:
        """The ledger of each party."""
        return {name: self.folder / f"{name}.db" for name in self.processes}

    def restart(self, party: str) -> None:
        """Start a party again that ended, with the ledger and the key it had."""
        before = self.processes[party]
        if before.poll() is None:
            before.terminate()
            before.wait()
        role = party if party == "dealer" else "node" if party == "node" else "owner"
        self.processes[party] = _process(self.folder, party, role)
        await_listening(self.folder, self.processes)

    def close(self) -> None:
        """Stop the processes and remove their files."""
        atexit.unregister(self.close)
        stop(self.processes, self.folder)


def stop(processes: Mapping[str, subprocess.Popen[bytes]], folder: Path) -> None:
    """End processes and remove their files."""
    for process in processes.values():
        process.terminate()
    for process in processes.values():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        if process.poll() is None:
            process.kill()
            process.wait()
    shutil.rmtree(folder, ignore_errors=True)


def start(
    data: Sequence[Any],
    *,
    name: str | None = None,
    keys: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    measures: Sequence[str] | Mapping[str, Any] | None = None,
    conditions: Mapping[str, str] | None = None,
    hierarchies: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    rules: Sequence[Rule | Any] = ("minimum-frequency", {"p-percent": 10}, "zero-cells"),
    together: Sequence[Sequence[str]] | None = None,
    unit: str | None = None,
    request: str | None = None,
    collusion: int = 1,
    time_limit: float = 60.0,
    computations: Mapping[str, Any] | None = None,
    budget: float | None = None,
) -> Parties:
    """Start an owner process for each dataset, and an independent node where there are two.

    Parameters
    ----------
    data
        Datasets, frames or files, one for each owner.
    name
        The joint relation in SQL; by default the name of the first dataset.
    keys, measures, conditions
        Columns to group by, to sum and to use in WHERE. By default text columns are keys and numbers
        are measures; codes and bounds that are not given are taken from all data.
    hierarchies, rules, together, unit, request, collusion, time_limit, computations, budget
        As in the policy. Where a computation needs a dealer, one more process is started.
    """
    if isinstance(conditions, str) or not isinstance(conditions or {}, Mapping):
        raise InputError(
            "conditions has names without types",
            code="joint-policy",
            hint='write {"age": "integer"}: text, integer, number, boolean or date',
        )
    datasets = [as_dataset(one) for one in data]
    if len(datasets) < 2:
        raise InputError(
            "a joint computation needs the records of two owners or more",
            code="joint-policy",
            hint="pass a list of datasets",
        )
    owners = [f"owner{place + 1}" for place in range(len(datasets))]
    nodes = owners[:_NODES] + ["node"] * (_NODES - min(len(owners), _NODES))
    folder = Path(tempfile.mkdtemp(prefix="discreet-joint-"))
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        dealers = ["dealer"] if computations else []
        parties = dict.fromkeys([*owners, *nodes, *dealers, "analyst"])
        ports = free_ports(len(parties))
        for party in parties:
            Identity.new(folder, party)
        stated = {
            "relation": name or datasets[0].name,
            "parties": {
                party: {"certificate": f"{party}.crt", "address": f"127.0.0.1:{port}"}
                for party, port in zip(parties, ports, strict=True)
            },
            "owners": owners,
            "nodes": nodes,
            "analysts": ["analyst"],
            "keys": _codes(datasets, keys),
            "measures": _bounds(datasets, measures),
            "conditions": dict(conditions or {}),
            "rules": [
                {one.name: plain(dataclasses.asdict(one))} if isinstance(one, Rule) else one
                for one in rules
            ],
            "hierarchies": {
                key: {one: list(codes) for one, codes in groups.items()}
                for key, groups in (hierarchies or {}).items()
            },
            "together": None if together is None else [list(group) for group in together],
            "unit": unit,
            "request": request,
            "collusion": collusion,
            "time_limit": time_limit,
            "dealer": "dealer" if dealers else None,
            "computations": dict(computations or {}),
            "budget": budget,
        }
        policy = dataclasses.replace(build(JointPolicy, stated), folder=str(folder))
        for party in [*owners, *(["node"] if "node" in nodes else []), *dealers]:
            file = folder / f"{party}.parquet"
            if party in owners:
                datasets[owners.index(party)].write(file)
            source = {"data": {"source": file.name}} if party in owners else {}
            # Through JSON: objects that Python shares would be aliases, which a policy may not have.
            text = yaml.safe_dump(json.loads(json.dumps({**source, "joint": stated})))
            (folder / f"{party}.yaml").write_text(text, encoding="utf-8")
            role = party if party == "dealer" else "owner" if party in owners else "node"
            processes[party] = _process(folder, party, role)
        made = Parties(policy, folder, processes)
        await_listening(folder, processes)
    except BaseException:
        stop(processes, folder)
        raise
    atexit.register(made.close)  # nobody is left listening when the caller forgets
    return made


def _process(folder: Path, party: str, role: str) -> subprocess.Popen[bytes]:
    words = ["joint", role, f"{party}.yaml", "--as", party, "--ledger", f"{party}.db"]
    return launch(folder, party, words)


def launch(
    folder: Path, party: str, words: Sequence[str], more: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start this program as a party of its own; `more` are environment variables for it alone."""
    with (folder / f"{party}.log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - this program itself, with words made here
            [sys.executable, "-m", "discreet", *words],
            cwd=folder,
            env={**os.environ, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def await_listening(folder: Path, processes: Mapping[str, subprocess.Popen[bytes]]) -> None:
    """Wait until every party says that it listens; raise what one says that ended."""
    until = time.monotonic() + _PATIENCE
    for party, process in processes.items():
        log = folder / f"{party}.log"
        while b"listens" not in log.read_bytes():
            if process.poll() is not None or time.monotonic() > until:
                said = log.read_text(encoding="utf-8", errors="replace").strip()
                raise EngineError(f"the party {party} did not start: {said}", code="party-failed")
            time.sleep(0.02)


def _codes(
    datasets: Sequence[Dataset], keys: Sequence[str] | Mapping[str, Sequence[str]] | None
) -> dict[str, list[str]]:
    if isinstance(keys, Mapping):
        return {key: [str(code) for code in codes] for key, codes in keys.items()}
    if keys is None:
        import pyarrow as pa

        schema = datasets[0].relation.schema
        keys = [field.name for field in schema if pa.types.is_string(field.type)
                or pa.types.is_dictionary(field.type)]  # fmt: skip
    found: dict[str, list[str]] = {}
    for key in keys:
        codes = {
            str(code)
            for one in datasets
            for code in one.frequencies([key]).column(key).to_pylist()
            if code is not None
        }
        found[key] = sorted(codes)
    return found


def _bounds(
    datasets: Sequence[Dataset], measures: Sequence[str] | Mapping[str, Any] | None
) -> dict[str, Any]:
    if isinstance(measures, Mapping):
        return dict(measures)
    if measures is None:
        import pyarrow as pa

        schema = datasets[0].relation.schema
        measures = [field.name for field in schema if pa.types.is_integer(field.type)]
    found: dict[str, Any] = {}
    for measure in measures:
        sums = [
            float(one.arrow([measure]).column(measure).to_pandas().abs().sum()) for one in datasets
        ]
        bound = 10 ** math.ceil(math.log10(max(*sums, 1.0)) + 1)
        room = EXACT // (len(datasets) * (bound + 1))
        decimals = next((digits for digits in (2, 1) if 10**digits <= room), 0)
        found[measure] = {"bound": float(bound), "decimals": decimals}
    return found


def free_ports(n: int) -> list[int]:
    """Return ports of this machine at which nobody listens now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
