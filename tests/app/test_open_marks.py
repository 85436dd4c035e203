"""Numbers that a file leaves open are not published; commands say and take what settles them."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from discreet.app.cli.main import build
from discreet.data.dataset import read
from discreet.errors import InputError
from discreet.tables.tabulation import tabulated


def test_a_table_of_amounts_that_may_be_thousands_says_what_to_write(tmp_path):
    file = tmp_path / "sales.csv"
    file.write_text("trade;sales\nfood;3.906\nwood;39.967\nfood;12\n")
    with pytest.raises(InputError, match=r"--thousands \.") as caught:
        tabulated(read(file), ["trade"], measure="sales")
    assert caught.value.code == "measure-not-numeric"


def test_init_takes_types_and_writes_them(tmp_path):
    file, policy = tmp_path / "trades.csv", tmp_path / "policy.yaml"
    file.write_text("nace;sales\n10.11;1,5\n25.62;2,5\n")
    said = ["init", str(file), "-o", str(policy), "--type", "nace=nominal"]
    assert CliRunner().invoke(build(), said).exit_code == 0
    written = policy.read_text()
    assert 'types: {"nace": "nominal"}' in written
    assert "codes, or numbers?" not in written
