"""Faults planted in the writer of records are found from the bytes, and nothing is published."""

from __future__ import annotations

import dataclasses
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dc
from discreet.microdata.anonymization import Anonymized
from discreet.microdata.models._base import Group
from discreet.registry import members
from discreet.verification import Held
from discreet.verification.findings import UNKNOWN
from discreet.verification.records import check_records

KEPT = dc.LocalSuppression(missing="category")


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "name": [f"Ms {n}" for n in range(12)],
            "town": ["Orléans"] * 4 + ["Nantes"] * 4 + ["Metz"] * 4,
            "share": [0.0] * 4 + [None] * 4 + [2.5] * 4,
            "ill": list("abcd") * 3,
        }
    )


def people(rows: pd.DataFrame | None = None, **more) -> dc.Dataset:
    roles = {"name": "identifier", "town": "quasi", "share": "quasi", "ill": "confidential"}
    return dc.read(frame() if rows is None else rows, roles=roles, name="people", **more)


def release(**more) -> Anonymized:
    found = dc.anonymize(people(), [dc.KAnonymity(4), dc.LDiversity("ill", 4)], method=KEPT)
    return dataclasses.replace(found, format="parquet", **more)


Change = Callable[[pa.Table], pa.Table]


def replaced(column: str, old: object, new: object) -> Change:
    """Replace one of the values that are so."""

    def change(table: pa.Table) -> pa.Table:
        values = table.column(column).to_pylist()
        values[values.index(old)] = new
        kind = table.schema.field(column).type
        place = table.column_names.index(column)
        # from_pandas=False: a number that is none stays one.
        return table.set_column(place, column, pa.array(values, kind, from_pandas=False))

    return change


def with_category(table: pa.Table) -> pa.Table:
    place = table.column_names.index("town")
    values = [*table.column("town").to_pylist(), "Gone"]
    listed = pa.array(values).dictionary_encode().slice(0, table.num_rows)
    return table.set_column(place, "town", listed)


def with_row(table: pa.Table) -> pa.Table:
    more = {"town": "Brest", "share": 1.0, "ill": "a"}
    return pa.concat_tables([table, pa.Table.from_pylist([more], table.schema)])


FAULTS: dict[str, tuple[Change, str]] = {
    "NaN beside null": (replaced("share", None, float("nan")), "k-"),
    "minus zero": (replaced("share", 0.0, -0.0), "k-"),
    "decomposed text": (
        replaced("town", "Orléans", unicodedata.normalize("NFD", "Orléans")),
        "k-",
    ),
    "empty text": (replaced("town", "Metz", ""), "k-"),
    "category of a suppressed record": (with_category, "nothing besides"),
    "suppressed record left in": (with_row, "number of records"),
    "record lost": (lambda t: t.slice(1), "number of records"),
    "identifier left in": (lambda t: t.append_column("name", pa.array(["x"] * len(t))), "columns"),
    "footer with a note": (lambda t: t.replace_schema_metadata({"note": "x"}), "nothing besides"),
    "a value made common": (replaced("ill", "a", "b"), "l-"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_writer_is_found_and_nothing_is_published(fault, tmp_path, monkeypatch):
    change, promise = FAULTS[fault]
    written = Anonymized.write_files

    def careless(self: Anonymized, folder: Path) -> None:
        written(self, folder)
        file = folder / "people.parquet"
        parquet.write_table(change(parquet.read_table(file)), file)

    monkeypatch.setattr(Anonymized, "write_files", careless)
    with pytest.raises(dc.EngineError) as raised:
        release().write(tmp_path / "out")
    assert raised.value.code == "promise-broken"
    assert promise in raised.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_nobody_stated_is_found(tmp_path):
    out = release().write(tmp_path / "out")
    assert dc.verify(out).holds
    (out / "notes.txt").write_text("Ms 3 lives in Metz")
    assert [finding.promise for finding in dc.verify(out).broken] == ["the files that were written"]


def test_a_csv_file_keeps_empty_texts_and_missing_values_apart(tmp_path):
    (tmp_path / "x.csv").write_text('town,ill\n,a\n"",a\n"N, ""x""\nS",b\n', encoding="utf-8")
    promise = {"file": "x.csv", "columns": ["town", "ill"], "records": 3, "keys": [["town"]]}
    promise["models"] = [{"name": "k-anonymity", "k": 2}]
    found = check_records(tmp_path, promise, Held())
    assert [finding.found for finding in found if not finding.holds] == ["3 of 3 classes break it"]


def test_forms_of_one_value_are_no_diversity(tmp_path):
    rows = "town,ill\nN,é\nN,e\u0301\nN,nan\nN,\nS,0\nS,-0\n"
    (tmp_path / "x.csv").write_text(rows, encoding="utf-8")
    promise = {"file": "x.csv", "columns": ["town", "ill"], "records": 6, "keys": [["town"]]}
    diverse = {"name": "l-diversity", "column": "ill", "l": 3, "kind": "distinct"}
    found = check_records(tmp_path, promise | {"models": [diverse]}, Held())
    assert [finding.found for finding in found if not finding.holds] == ["2 of 2 classes break it"]


def test_people_are_counted_at_publication_and_records_afterwards(tmp_path):
    promise = {"file": "x.csv", "columns": ["town"], "records": 4, "keys": [["town"]]}
    promise |= {"counted": "people", "models": [{"name": "k-anonymity", "k": 2}]}
    (tmp_path / "x.csv").write_text("town\nN\nN\nS\nS\n", encoding="utf-8")
    alone = check_records(tmp_path, promise, Held())
    assert alone[-1].verdict == UNKNOWN
    records = pa.table({"town": ["N", "S", "N", "S"], "who": [1, 2, 1, 3]})
    known = check_records(tmp_path, promise, Held(records=records, unit="who"))
    assert known[-1].found == "1 of 2 classes break it"
    other = pa.table({"town": ["N", "S", "S", "S"], "who": [1, 2, 4, 3]})
    differ = check_records(tmp_path, promise, Held(records=other, unit="who"))
    assert not differ[-1].holds


def test_a_missing_key_matches_every_value_where_that_is_promised(tmp_path):
    rng = np.random.default_rng(3)
    for _ in range(20):
        keys = [[rng.choice(["a", "b", ""]) for _ in range(3)] for _ in range(8)]
        lines = "\n".join(",".join(row) for row in keys)
        (tmp_path / "x.csv").write_text(f"p,q,r\n{lines}\n", encoding="utf-8")
        sizes = [
            sum(all(a == b or "" in (a, b) for a, b in zip(x, y, strict=True)) for y in keys)
            for x in keys
        ]
        for k in range(1, 6):
            promise = {"file": "x.csv", "columns": ["p", "q", "r"], "records": 8}
            promise |= {"keys": [["p", "q", "r"]], "reading": "wildcard"}
            promise["models"] = [{"name": "k-anonymity", "k": k}]
            found = check_records(tmp_path, promise, Held())
            assert all(finding.holds for finding in found) == (min(sizes) >= k)


@pytest.mark.parametrize("name", members("model"))
def test_every_model_is_judged_as_it_is_defined(name, tmp_path):
    """The verifier has its own form of every model; both say the same of every class."""
    rng = np.random.default_rng(5)
    tree = dc.Hierarchy.from_levels({"All": {"x": ["a", "b"], "y": ["c", "d"]}})
    leaves = {leaf: ["xy"[place // 2], "All"] for place, leaf in enumerate("abcd")}
    held_tree = {"ancestors": {"ill": leaves}, "orders": {"ill": list("abcd")}}
    judged = 0
    for model in members("model")[name].examples(column="ill"):
        for _ in range(40):
            groups = [list(rng.choice(list("abcd"), rng.integers(1, 7))) for _ in range(3)]
            whole = tuple(sorted(value for group in groups for value in group))
            lines = "".join(f"{n},{v}\n" for n, group in enumerate(groups) for v in group)
            (tmp_path / "x.csv").write_text("town,ill\n" + lines, encoding="utf-8")
            promise = {"file": "x.csv", "columns": ["town", "ill"], "records": len(whole)}
            promise |= {"keys": [["town"]], "models": [model.settings()]}
            crowd = [int(count) for count in rng.integers(1, 12, 3)]
            known = [str(n) for n, count in enumerate(crowd) for _ in range(count)]
            population = pa.table({"town": known})
            found = check_records(tmp_path, promise, Held(population=population, **held_tree))[-1]
            expected = all(
                model.defined(Group(tuple(group), whole, people=count, tree=tree))
                for group, count in zip(groups, crowd, strict=True)
            )
            assert found.verdict != UNKNOWN, f"the verifier does not know {model}"
            assert found.holds == expected, (model, groups)
            judged += 1
    assert judged


@pytest.mark.parametrize("unit", [None, "who"])
def test_a_suppressed_record_that_still_says_something_is_found(unit, tmp_path, monkeypatch):
    rows = pd.DataFrame(
        {
            "who": range(9),
            "town": ["a"] * 8 + ["z"],
            "ward": list("xy") * 4 + ["x"],
            "ill": list("ffggffggf"),
        }
    )
    data = dc.read(
        rows,
        roles={"who": "identifier", "town": "quasi", "ward": "other", "ill": "confidential"},
        hierarchies={"town": dc.Hierarchy.from_levels({"Total": ["a", "z"]})},
        unit=unit,
        name="people",
    )
    method = dc.Generalization(suppression=0.2, highest={"town": 0}, keep=True)
    made = dataclasses.replace(
        dc.anonymize(data, dc.KAnonymity(3), method=method), format="parquet"
    )
    assert made.write(tmp_path / "good").exists()
    written = Anonymized.write_files

    def careless(self: Anonymized, folder: Path) -> None:
        written(self, folder)
        file = folder / "people.parquet"
        parquet.write_table(replaced("ward", None, "x")(parquet.read_table(file)), file)

    monkeypatch.setattr(Anonymized, "write_files", careless)
    with pytest.raises(dc.EngineError) as raised:
        made.write(tmp_path / "out")
    assert "suppressed records are blank" in raised.value.message


def test_a_text_that_looks_like_no_number_is_a_value(tmp_path):
    rows = pd.DataFrame({"town": ["N"] * 4, "ill": ["nan", None, "-0", "0"]})
    data = dc.read(rows, roles={"town": "quasi", "ill": "confidential"}, name="people")
    made = dc.anonymize(data, [dc.KAnonymity(4), dc.LDiversity("ill", 4)], method=KEPT)
    for kind in ("csv", "parquet", "arrow"):
        out = dataclasses.replace(made, format=kind).write(tmp_path / kind)
        assert dc.verify(out).holds


@pytest.mark.parametrize("name", ["../elsewhere.csv", "linked.csv"])
def test_evidence_does_not_choose_files_elsewhere(name, tmp_path):
    """A stranger's folder may state anything; what lies beside it is not read for it."""
    frame = pd.DataFrame({"age": [20, 20, 30, 30], "ill": list("abab")})
    people = dc.read(frame, roles={"age": "quasi", "ill": "confidential"}, name="people")
    out = dc.anonymize(people, dc.KAnonymity(2), method=dc.Mondrian()).write(tmp_path / "out")
    (out / "people.csv").rename(tmp_path / "elsewhere.csv")
    (out / "linked.csv").symlink_to(tmp_path / "elsewhere.csv")
    stated = (out / "evidence.json").read_text().replace("people.csv", name)
    (out / "evidence.json").write_text(stated)
    assert [finding.found for finding in dc.verify(out).broken][-1] == "it cannot (ValueError)"


def _arrow(tmp_path: Path) -> tuple[Path, pa.Table]:
    rows = frame().assign(pay=[1.5, None] * 6, seen=[True, None, False] * 4, age=range(12))
    roles = dict.fromkeys(rows, "confidential") | {"name": "identifier", "town": "quasi"}
    data = dc.read(rows.astype({"seen": "boolean"}), roles=roles, name="people", vouch=["age"])
    made = dc.anonymize(data, dc.KAnonymity(4), method=KEPT)
    out = dataclasses.replace(made, format="arrow").write(tmp_path / "out")
    with pa.ipc.open_file(out / "people.arrow") as reader:
        return out, reader.read_all()


def _rewritten(out: Path, table: pa.Table) -> list[str]:
    with pa.ipc.new_file(str(out / "people.arrow"), table.schema) as writer:
        writer.write_table(table)
    return [finding.found for finding in dc.verify(out).broken]


def _under(column: pa.ChunkedArray) -> bytes:
    """The bytes of numbers at the places where they are missing."""
    found = b""
    for chunk in column.chunks:
        width, raw = chunk.type.bit_width // 8, chunk.buffers()[1].to_pybytes()
        for place in np.flatnonzero(chunk.is_null().to_numpy(zero_copy_only=False)):
            found += raw[(chunk.offset + place) * width :][:width]
    return found


def test_an_arrow_file_holds_nothing_below_missing_values(tmp_path):
    """The memory of the process stood there, addresses and all."""
    from discreet.data.engines.results import write_batches

    amounts = np.arange(1, 13, dtype=np.int64) * 987_654_321
    bits = pa.array([place % 3 > 0 for place in range(12)]).buffers()[1]
    batch = pa.record_batch(
        [pa.Array.from_buffers(pa.int64(), 12, [bits, pa.py_buffer(amounts)])], ["x"]
    )
    write_batches([batch], batch.schema, tmp_path / "x.arrow", None)
    with pa.ipc.open_file(tmp_path / "x.arrow") as reader:
        column = reader.read_all().column("x")
    assert column.null_count == 4
    assert not any(_under(column))
    out, table = _arrow(tmp_path)
    assert table.column("pay").null_count
    assert not any(_under(table.column("pay")))
    assert dc.verify(out).holds


def test_bytes_of_an_arrow_file_that_no_row_has_are_found(tmp_path):
    out, table = _arrow(tmp_path)
    amounts = np.arange(12, dtype=np.float64)
    bits = table.column("pay").combine_chunks().buffers()[0]
    numbers = pa.Array.from_buffers(pa.float64(), 12, [bits, pa.py_buffer(amounts)])
    place = table.column_names.index("pay")
    assert _rewritten(out, table.set_column(place, "pay", numbers)) == [
        "bytes of column 'pay' that no row has"
    ]
    words = pa.array([*table.column("ill").to_pylist(), "Ann Smith"]).buffers()
    texts = pa.Array.from_buffers(pa.string(), 12, words)
    place = table.column_names.index("ill")
    assert _rewritten(out, table.set_column(place, "ill", texts)) == [
        "bytes of column 'ill' that no row has"
    ]
    assert b"Ann Smith" in (out / "people.arrow").read_bytes()
    assert not _rewritten(out, table)


def test_notes_beside_columns_are_found(tmp_path):
    out, table = _arrow(tmp_path)
    noted = [field.with_metadata({"who": "Ann Smith"}) for field in table.schema]
    assert "notes on column 'town'" in _rewritten(out, table.cast(pa.schema(noted)))[0]
    assert "footer" in _rewritten(out, table.replace_schema_metadata({"who": "Ann Smith"}))[0]
    folder = release().write(tmp_path / "parquet")
    rows = parquet.read_table(folder / "people.parquet")
    for changed in (
        rows.cast(pa.schema([field.with_metadata({"who": "Ann"}) for field in rows.schema])),
        rows.replace_schema_metadata({"who": "Ann Smith"}),
    ):
        parquet.write_table(changed, folder / "people.parquet")
        assert dc.verify(folder).broken[0].promise == "nothing besides the rows"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names need POSIX")
def test_pipes_and_links_in_a_folder_are_named_and_not_waited_for(tmp_path):
    for place, name in enumerate(("people.parquet", "evidence.json", "more")):
        folder = release().write(tmp_path / f"out{place}")
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
        if name == "evidence.json":
            with pytest.raises(dc.InputError, match="malformed-evidence"):
                dc.verify(folder)
        else:
            assert dc.verify(folder).broken
    folder = release().write(tmp_path / "linked")
    (folder / "more").symlink_to(tmp_path)
    assert dc.verify(folder).broken[0].found == "1 files more, 0 less"


def test_a_release_named_as_its_evidence_is_verified(tmp_path):
    """The folder was taken for the evidence, and reading it was a crash."""
    release().write(tmp_path / "evidence.json")
    assert dc.verify(tmp_path).holds
