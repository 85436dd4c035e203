"""What is withheld, suppressed, identifying or secret is in no byte that a run leaves behind."""

from __future__ import annotations

import html
import io
import json
import re
import tempfile
import urllib.parse
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli.main import build

NAME, ILL, TOWN, PAY, PASSWORD = "Zymurgy", "quassia", "Ouagadougou", 7_771_777, "Xyl0ph0ne"
#: How a number may be printed.
SPELLINGS = [f"{PAY}", f"{PAY:,}", f"{PAY:_}", f"{PAY:.2e}", f"{PAY / 1e6:.6f}"]
MARKERS = [NAME, ILL, TOWN, *SPELLINGS, PASSWORD]

POLICY = """
data:
  source: people.csv
  name: people
  roles: {{name: identifier, town: quasi, sector: quasi, ill: confidential, pay: confidential}}
  hierarchies: {{town: {{file: town.csv}}, sector: {{file: sector.csv}}}}
releases:
  - {{name: salaries, kind: table, by: [sector, town], measure: pay, rules: [{{minimum-frequency: 3}}]}}
  - {{name: intervals, kind: table, by: [sector], measure: pay, rules: [{{p-percent: 10}}], method: intervals}}
  - name: anonymous
    kind: anonymize
    models: [{{k-anonymity: 3}}]
    method: {{generalization: {{suppression: 0.1, highest: {{town: 0, sector: 0}}}}}}
    format: {format}
  - name: starred
    kind: anonymize
    models: [{{k-anonymity: 3}}]
    method: {{generalization: {{suppression: 0.1, keep: true, highest: {{town: 0, sector: 0}}}}}}
    format: {format}
  - name: cells
    kind: anonymize
    models: [{{k-anonymity: 3}}]
    method: {{local-suppression: {{}}}}
    format: {format}
gateways:
  - name: people
    kind: gateway
    guard: {{restriction: {{k: 3}}}}
    ledger: "postgresql://curator:{password}@127.0.0.1:1/none"
"""


def rows() -> pd.DataFrame:
    """Four towns of people, and one person who is alone in every way."""
    size = 60
    frame = pd.DataFrame(
        {
            "name": [f"{NAME} {n}" for n in range(size)],
            "town": [["Aix", "Brest", "Caen", "Dax"][n % 4] for n in range(size)],
            "sector": [["IT", "Fin"][n // 4 % 2] for n in range(size)],
            "ill": [["flu", "gout", "none"][n % 3] for n in range(size)],
            "pay": [10_000 + 137 * n for n in range(size)],
        }
    )
    alone = {"name": f"{NAME} alone", "town": TOWN, "sector": "IT", "ill": ILL, "pay": PAY}
    return pd.concat([frame, pd.DataFrame([alone])], ignore_index=True)


def prepared(folder: Path, format: str) -> Path:
    folder.mkdir()
    frame = rows()
    frame.to_csv(folder / "people.csv", index=False)
    for column in ("town", "sector"):
        codes = [f"{code},Total" for code in dict.fromkeys(frame[column])]
        (folder / f"{column}.csv").write_text("\n".join(["child,parent", "Total,", *codes]) + "\n")
    policy = folder / "policy.yaml"
    policy.write_text(POLICY.format(format=format, password=PASSWORD))
    return policy


def texts(name: str, content: bytes) -> Iterator[tuple[str, str]]:
    """Give everything that a file says, decoded in every way a reader has."""
    raw = content.decode("utf-8", "replace")
    yield name, raw
    yield name, content.decode("utf-16-le", "ignore")
    if name.endswith(".html"):
        yield name, urllib.parse.unquote(html.unescape(raw))
        yield name, re.sub(r"<[^>]*>", "", html.unescape(raw))
    if name.endswith(".json"):
        yield name, json.dumps(json.loads(raw), ensure_ascii=False)
    if name.endswith(".xlsx"):
        with zipfile.ZipFile(io.BytesIO(content)) as book:
            for part in book.namelist():
                yield from texts(f"{name}/{part}", book.read(part))
    if name.endswith(".parquet"):
        file = parquet.ParquetFile(io.BytesIO(content))
        yield name, str(file.metadata.metadata) + str(file.schema_arrow.to_string())
        for group in range(file.num_row_groups):
            part = file.metadata.row_group(group)
            yield name, str([part.column(place).statistics for place in range(part.num_columns)])
        yield name, str(file.read().to_pylist())
    if name.endswith(".arrow"):
        yield name, str(pa.ipc.open_file(io.BytesIO(content)).read_all().to_pylist())


def told(folder: Path, markers: list[str]) -> list[str]:
    """Return the files below a folder that say a marker."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            for name, text in texts(path.relative_to(folder).as_posix(), path.read_bytes()):
                found += [f"{name}: {marker}" for marker in markers if marker in text]
    return found


@pytest.mark.parametrize("format", ["csv", "parquet", "arrow"])
def test_no_byte_of_a_policy_run_holds_what_is_withheld(format, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    policy = prepared(tmp_path / "curator", format)
    words = ["release", str(policy), "-o", str(tmp_path / "out")]
    ledger = f"postgresql://curator:{PASSWORD}@127.0.0.1:1/none"
    done = CliRunner().invoke(build(), [*words, "--allow", ledger])
    assert done.exit_code == 0, done.output + str(done.exception)
    log = done.output
    out = tmp_path / "out"
    # The codes of a table are public, also of withheld cells; local suppression takes keys out and
    # leaves the rest of a record as it is.
    public = {"salaries": [TOWN], "intervals": [TOWN], "cells": [ILL, *SPELLINGS]}
    for place in sorted(path for path in out.iterdir() if path.is_dir()):
        hidden = [marker for marker in MARKERS if marker not in public.get(place.name, ())]
        assert told(place, hidden) == []
    rest = [m for m in MARKERS if m != TOWN]
    for file in (out / "record.json", out / "policy.yaml"):
        assert [m for m in rest if m in file.read_text()] == []
    assert [m for m in rest if m in log] == []
    assert told(tmp_path / "temporary", MARKERS) == []


#: Every other kind of release and section, with a memory that all of them are recorded in.
WIDE = """
data:
  source: people.csv
  name: people
  roles: {{name: identifier, town: quasi, sector: quasi, ill: confidential, pay: confidential}}
  hierarchies: {{town: {{file: town.csv}}, sector: {{file: sector.csv}}}}
  domains:
    ill: [flu, gout, none, {ill}]
    pay: {{bounds: [0, 10000000]}}
  vouch: [town, sector]
ledger: memory.db
snapshot: "2026"
about: {{title: People, pdf: false}}
releases:
  - {{name: drawn, kind: synthesize, method: {{cart: {{min_leaf: 10}}}}}}
  - {{name: private, kind: synthesize, method: {{mst: {{epsilon: 3.0, delta: 1.0e-6}}}}, format: parquet}}
  - {{name: masked, kind: mask, methods: [{{top-coding: {{columns: [pay], value: 15000}}}}], format: parquet}}
  - {{name: permuted, kind: permutation, sensitive: pay, k: 3}}
  - {{name: counts, kind: table, by: [sector, town], method: {{top-down: {{rho: 1.0}}}}}}
retrieval:
  - {{name: towns, kind: retrieval-table, key: town, columns: [sector], schemes: [dpf], servers: {{a: "localhost:7001", b: "localhost:7002"}}}}
search: {{vocabulary: words.csv, url: "https://curator:{password}@host/find?q={{query}}", disguise: goopir}}
gateways:
  - name: people
    kind: gateway
    guard: {{restriction: {{k: 3}}}}
    ledger: "postgresql://curator:{password}@127.0.0.1:1/none"
    head: head.txt
"""


def test_no_byte_of_other_kinds_of_release_or_their_memory_holds_what_is_withheld(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    policy = prepared(tmp_path / "curator", "csv")
    policy.write_text(WIDE.format(password=PASSWORD, ill=ILL))
    allowed = [
        "--allow", f"postgresql://curator:{PASSWORD}@127.0.0.1:1/none",
        "--allow", f"https://curator:{PASSWORD}@host",
    ]  # fmt: skip
    out, memory = tmp_path / "out", tmp_path / "curator" / "memory.db"
    granted = ["ledger", "grant", str(memory), "people", "--epsilon", "50", "--delta", "0.001"]
    granted += ["--accountant", "zcdp"]
    assert CliRunner().invoke(build(), granted).exit_code == 0
    done = CliRunner().invoke(build(), ["release", str(policy), "-o", str(out), *allowed])
    assert done.exit_code == 0, done.output + str(done.exception)
    # Records of a model without a promise may repeat a value; the town is public, and declared codes are.
    public = {
        "drawn": [ILL, TOWN, *SPELLINGS],
        "private": [ILL, TOWN],
        "permuted": [ILL, *MARKERS[2:-1]],
    }
    public |= {"masked": [ILL, TOWN], "counts": [TOWN]}
    for place in sorted(path for path in out.iterdir() if path.is_dir()):
        hidden = [marker for marker in MARKERS if marker not in public.get(place.name, [TOWN])]
        assert told(place, hidden) == []
    for file in (out / "record.json", out / "policy.yaml"):
        assert [m for m in (NAME, PASSWORD, *SPELLINGS) if m in file.read_text()] == []
    assert [m for m in (NAME, PASSWORD, *SPELLINGS) if m in done.output] == []
    assert told(tmp_path / "temporary", MARKERS) == []
    # The memory knows who was in a release, and tells nobody's name, pay or illness.
    words = ["ledger", "export", str(memory), "-o", str(tmp_path / "export.jsonl")]
    exported = CliRunner().invoke(build(), words)
    assert exported.exit_code == 0, exported.output
    for file in (memory, tmp_path / "export.jsonl"):
        found = [m for _, text in texts(file.name, file.read_bytes()) for m in MARKERS if m in text]
        assert found in ([], [TOWN]), file.name


def test_no_byte_of_a_masked_or_permuted_release_names_people(tmp_path):
    frame = rows().iloc[:-1]
    roles = {"name": "identifier", "town": "quasi", "sector": "quasi"}
    people = dc.read(frame, roles=roles | {"ill": "confidential", "pay": "confidential"})
    dc.mask(people, [dc.TopCoding("pay", value=15_000)]).write(tmp_path / "masked")
    dc.permute(people, sensitive="pay", k=3, vouch=["town"]).write(tmp_path / "permuted")
    assert told(tmp_path, [NAME]) == []
    assert told(tmp_path / "masked", [str(pay) for pay in frame["pay"] if pay > 15_000]) == []


def test_no_byte_of_a_ledger_or_its_export_holds_a_confidential_value(tmp_path):
    roles = {"name": "identifier", "town": "quasi", "sector": "quasi"}
    people = dc.read(
        rows(), roles=roles | {"ill": "confidential", "pay": "confidential"}, name="people"
    )
    with dc.Gateway(people, guard=dc.Restriction(k=3), ledger=tmp_path / "ledger.db") as gate:
        for condition in ("sector = 'IT'", "town = 'Aix'", "sector = 'IT' AND town <> 'Aix'"):
            gate.ask(f"SELECT AVG(pay) FROM people WHERE {condition}", user="ana")
        refused = gate.ask(
            "SELECT SUM(pay) FROM people WHERE town NOT IN ('Aix', 'Brest', 'Caen', 'Dax')",
            user="ana",
        )
        assert refused.kind == "refused"
        gate.ledger.export(tmp_path / "export.jsonl")
    assert told(tmp_path, [NAME, ILL, TOWN, *SPELLINGS]) == []


def test_the_search_finds_what_is_there(tmp_path):
    """Control: each kind of file is found out when it does hold a marker."""
    frame = pd.DataFrame({"town": [TOWN, "Aix"], "pay": [PAY, 1]})
    frame.to_csv(tmp_path / "a.csv")
    frame.to_parquet(tmp_path / "a.parquet", compression="zstd")
    frame.to_excel(tmp_path / "a.xlsx")
    (tmp_path / "a.html").write_text("".join(f"&#{ord(letter)};" for letter in TOWN))
    (tmp_path / "a.json").write_text(json.dumps({"x": f"{TOWN} \u00e9"}))
    listed = pa.array([TOWN, "Aix"]).dictionary_encode().slice(1)
    with pa.ipc.new_file(tmp_path / "a.arrow", pa.schema([("town", listed.type)])) as writer:
        writer.write_table(pa.table({"town": listed}))
    found = {name.split(":")[0].split("/")[0] for name in told(tmp_path, [TOWN])}
    assert found == {"a.csv", "a.parquet", "a.xlsx", "a.html", "a.json", "a.arrow"}
