"""Contract tests: promises that every member of every family keeps, present or future."""

import dataclasses
import inspect

import pytest

import discreet
from discreet.registry import class_file, families, members

MEMBERS = [(family, cls) for family in families() for cls in members(family).values()]


@pytest.fixture(params=MEMBERS, ids=lambda pair: f"{pair[0]}:{pair[1].name}")
def member(request):
    return request.param[1]


def test_there_are_members():
    assert len(MEMBERS) >= 1


def test_no_two_members_have_one_public_name(member):
    # `dc.Regression` was an attack where people meant the analysis of that name.
    assert getattr(discreet, member.__name__) is member


def test_it_is_a_frozen_dataclass(member):
    assert dataclasses.is_dataclass(member)
    assert member.__dataclass_params__.frozen


def test_its_name_is_typed_as_its_file_is_called(member):
    file = member.__module__.rsplit(".", 1)[-1]
    assert member.name == member.name.lower()
    assert member.name.replace("-", "_").isidentifier()
    if len([c for _, c in MEMBERS if c.__module__ == member.__module__]) == 1:
        assert file in (class_file(member.__name__), member.name.replace("-", "_"))


def test_its_docstring_says_what_it_does(member):
    summary = member.summary()
    assert 10 < len(summary) <= 110
    assert summary.endswith(".")


def test_its_parameters_are_documented(member):
    for item in member.parameters():
        assert item.help, f"{member.__name__}.{item.name} has no help"


def test_its_defaults_are_allowed(member):
    for item in member.parameters():
        if not item.required:
            assert item.allows(item.default), f"{member.__name__}.{item.name}"


def test_it_is_a_public_name(member):
    if member.__module__.rsplit(".", 1)[-1] == class_file(member.__name__):
        assert getattr(discreet, member.__name__) is member


def test_it_is_not_abstract(member):
    assert not inspect.isabstract(member)
