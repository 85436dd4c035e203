"""describe: the exposure agrees with brute force, and the command prints text and JSON."""

import importlib
import json
import sys
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from discreet import demo
from discreet.app.cli import main as cli
from discreet.data.dataset import read
from discreet.data.describe import describe, exposure
from discreet.errors import InputError

values = st.lists(
    st.tuples(st.sampled_from(["f", "m", None]), st.integers(0, 4)), min_size=1, max_size=40
)


@settings(max_examples=40, deadline=None)
@given(values)
def test_exposure_is_that_of_brute_force(rows):
    table = pa.table({"sex": [a for a, _ in rows], "age": [b for _, b in rows]})
    found = exposure(read(table).relation, ["sex", "age"])
    sizes = Counter(rows)
    assert found.classes == len(sizes)
    assert found.smallest_class == min(sizes.values())
    assert found.unique_records == sum(1 for n in sizes.values() if n == 1)
    assert found.below_3 == sum(n for n in sizes.values() if n < 3)
    assert found.below_5 == sum(n for n in sizes.values() if n < 5)
    assert found.records == len(rows)
    guess = sum(n * (1 / n) for n in sizes.values())
    assert found.expected_reidentifications == pytest.approx(guess)


def test_given_roles_stand():
    data = read(demo.salaries_arrow(), roles={"region": "confidential"}, name="s")
    found = {column.name: column for column in describe(data).columns}
    assert found["region"].role == "confidential"
    assert found["region"].reason == "given by the curator"
    assert found["sector"].role == "quasi"  # still a suggestion
    assert describe(data).exposure.columns == ("sector",)


def test_nothing_to_expose():
    description = describe(read(pa.table({"salary": [1.0, 2.0]}), name="x"))
    assert description.exposure is None
    assert "salary" in str(description)


def test_an_empty_frame():
    description = describe(read(pa.table({"age": pa.array([], pa.int64())}), name="x"))
    assert description.records == 0
    assert description.exposure is None


def test_unknown_column():
    with pytest.raises(InputError) as caught:
        exposure(read(demo.salaries_arrow()).relation, ["sectr"])
    assert caught.value.code == "unknown-column"


def test_the_function_is_found_although_a_module_has_its_name():
    import discreet as dc

    assert dc.describe is describe
    assert importlib.import_module("discreet.data").describe is describe
    assert sys.modules["discreet.data.describe"].describe is describe


def test_report_forms():
    description = describe(read(demo.population_arrow(300), name="people"))
    assert len(description.to_frame()) == 11
    plain = json.loads(json.dumps(description.to_dict()))
    assert plain["exposure"]["records"] == 300
    assert {"name", "type", "distinct", "missing", "uniqueness", "role", "reason"} == set(
        plain["columns"][0]
    )
    assert "<table>" in description._repr_html_()


def test_the_command(tmp_path):
    import pyarrow.csv

    file = tmp_path / "people.csv"
    pyarrow.csv.write_csv(demo.population_arrow(200), file)
    runner = CliRunner()
    shown = runner.invoke(cli.build(), ["describe", str(file)])
    assert shown.exit_code == 0, shown.output
    assert "people: 200 records" in shown.output
    assert "the name says" in shown.output
    plain = runner.invoke(cli.build(), ["describe", str(file), "--json"])
    data = json.loads(plain.output)
    assert data["records"] == 200
    assert data["exposure"]["unique_share"] > 0
    assert sorted(tmp_path.iterdir()) == [file]
    file = tmp_path / "odd.bin"
    file.write_text("a|b\n1|2\n")
    shown = runner.invoke(
        cli.build(), ["describe", str(file), "--format", "csv", "--delimiter", "|"]
    )
    assert shown.exit_code == 0, shown.output


def test_reasons_stand_below_where_names_leave_no_room():
    import pandas as pd

    wide = pd.DataFrame({"Verweildauer (Tage)": [1, 2, 3, 4] * 10, "Arzt": ["Dr. A", "Dr. B"] * 20})
    lines = str(describe(read(wide))).splitlines()
    assert max(map(len, lines)) <= 80
    at = next(n for n, line in enumerate(lines) if line.startswith("Verweildauer (Tage)"))
    assert lines[at + 1] == "    4 different numbers, like a code or a count"
