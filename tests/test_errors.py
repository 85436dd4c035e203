"""The error tree: stable codes, facts as attributes, one mapping to exit codes and statuses."""

import pickle

import pytest

from discreet import errors
from discreet.errors import (
    DiscreetError,
    EngineError,
    InfeasibleError,
    InputError,
    RefusedError,
    nearest,
)

BRANCHES = [InputError, RefusedError, InfeasibleError, EngineError]


def test_exit_codes_and_statuses_tell_the_branches_apart():
    assert len({branch.exit_code for branch in BRANCHES}) == 4
    assert len({branch.http_status for branch in BRANCHES}) == 4
    assert all(branch.exit_code not in (0, 1) for branch in BRANCHES)


@pytest.mark.parametrize("branch", BRANCHES)
def test_an_error_survives_pickling(branch):
    error = branch(
        "found x", code="some-code", hint="write y", file="a.csv", line=3, column="age", size=7
    )
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is branch
    assert again.to_dict() == error.to_dict()
    assert str(again) == str(error) == "a.csv:3: found x; write y [some-code]"


def test_to_dict_leaves_out_what_is_unknown():
    assert InputError("m", code="c").to_dict() == {"error": "c", "message": "m"}


def test_where_is_file_and_line():
    assert InputError("m", code="c", file="f", line=2).where == "f:2"
    assert InputError("m", code="c", line=2).where == "line 2"
    assert InputError("m", code="c").where is None


def test_nearest_ignores_case_and_gives_up_on_strangers():
    assert nearest("SALARY", ["salary", "sector"]) == "salary"
    assert nearest("xyz", ["salary", "sector"]) is None


def test_all_names_exist():
    assert set(errors.__all__) <= set(dir(errors))
    assert issubclass(InputError, DiscreetError)
