"""The JSON Schema and the loader agree on how members are written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args, get_origin

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.app.policy.json_schema import policy_schema
from discreet.errors import InputError
from discreet.registry import build, families, members

SCHEMA = policy_schema()
# No text reads as a number or a truth: the command line's texts are the loader's own business.
WORDS = st.sampled_from(["age", "salary", "x y", "–"])
WRONG = st.sampled_from([-1, 0, 1, 2.5, True, None, "age", [], ["age"], [1, 2], {}, 1e12])


def values(kind) -> st.SearchStrategy:
    """Values that a parameter of a type may have, and some that it may not."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is int:
        return st.integers(-2, 60)
    if kind is float:
        return st.one_of(st.integers(-1, 60), st.floats(-1, 200, allow_nan=False))
    if kind is bool:
        return st.booleans()
    if kind is type(None):
        return st.none()
    if origin is Literal:
        return st.sampled_from([*inner, "none of these"])
    if origin in (list, tuple, Sequence):
        return st.one_of(st.lists(values(inner[0]), max_size=3), values(inner[0]))
    if origin in (dict, Mapping):
        return st.dictionaries(WORDS, WORDS, max_size=2)
    if inner:
        return st.one_of(*map(values, inner))
    if getattr(kind, "family_name", None):
        return written(kind.family_name)
    return WORDS


def refused(base, data) -> InputError | None:
    try:
        build(base, data)
    except InputError as error:
        return error
    return None


def is_structural(error: InputError) -> bool:
    """Whether the registry refused; what a member checks by itself is beyond a schema."""
    trace, folders = error.__traceback__, []
    while trace is not None:
        folders.append(Path(trace.tb_frame.f_code.co_filename).parent.name)
        trace = trace.tb_next
    # From the first step into the registry on, nothing else was asked.
    return set(folders[folders.index("registry") :]) == {"registry"}


def parameters(cls) -> st.SearchStrategy:
    known = {}
    for item in cls.parameters():
        strategy = values(item.type)
        if item.choices:
            strategy = st.one_of(st.sampled_from(item.choices), strategy)
        known[item.name] = st.one_of(strategy, strategy, strategy, WRONG)
    required = {item.name for item in cls.parameters() if item.required}
    usual = st.fixed_dictionaries(
        {name: s for name, s in known.items() if name in required},
        optional={name: s for name, s in known.items() if name not in required},
    )
    dashed = usual.map(lambda found: {k.replace("_", "-"): v for k, v in found.items()})
    strange = usual.map(lambda found: {**found, "surprise": 1})
    lacking = usual.map(lambda found: dict(list(found.items())[1:]))
    return st.one_of(usual, usual, dashed, strange, lacking)


def written(family: str) -> st.SearchStrategy:
    """A member as a policy may write it."""

    def of(item):
        name, cls = item
        given = parameters(cls)
        ways = [
            st.just(name),
            given.map(lambda found: {name: found}),
            given.map(lambda found: {"name": name, **found}),
            st.just({name: None}),
        ]
        if cls.parameters():
            ways.append(values(cls.parameters()[0].type).map(lambda first: {name: first}))
        return st.one_of(*ways)

    return st.sampled_from(list(members(family).items())).flatmap(of)


def test_where_one_member_is_taken_the_schema_allows_no_other():
    validator = jsonschema.Draft202012Validator(
        {"$ref": "#/$defs/family-synthesizer", "$defs": SCHEMA["$defs"]}
    )
    assert validator.is_valid({"partially-synthetic": {"columns": ["age"], "by": {"cart": 5}}})
    assert not validator.is_valid({"partially-synthetic": {"columns": ["age"], "by": {"aim": 1}}})


@pytest.mark.parametrize("family", [name for name in families() if name != "job"])
def test_what_the_schema_allows_the_loader_reads_and_the_other_way_round(family):
    if not members(family):
        pytest.skip("no members yet")
    base = families()[family][0].base
    validator = jsonschema.Draft202012Validator(
        {"$ref": f"#/$defs/family-{family}", "$defs": SCHEMA["$defs"]}
    )

    @settings(
        max_examples=60,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(written(family))
    def check(data):
        allowed = validator.is_valid(json.loads(json.dumps(data)))
        refusal = refused(base, data)
        if refusal is None:
            assert allowed, f"the loader reads what the schema refuses: {data}"
        elif is_structural(refusal):
            assert not allowed, f"the schema allows {data}, which the loader refuses: {refusal}"

    check()
