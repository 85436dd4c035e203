"""Every member of every family keeps the laws; every broken one is caught."""

import doctest
import importlib
import sys
from pathlib import Path

import pytest

from discreet.registry import class_file, families, members
from tests.laws import broken, guard, judge, laws, parameters

#: One worker judges a family, so that what its members compile is compiled once; methods of
#: anonymization and masking share their kernels.
SHARED = {"anonymization": "masking"}


def together(family: str) -> pytest.MarkDecorator:
    return pytest.mark.xdist_group(f"laws-{SHARED.get(family, family)}")


MEMBERS = [
    pytest.param(member, law, id=f"{family}:{member.name}:{law.__name__}", marks=together(family))
    for family in families()
    for member in members(family).values()
    for law in laws(family)
]
BROKEN = [
    pytest.param(
        member, law, id=f"{family}:{member.__name__}:{law.__name__}", marks=together(family)
    )
    for family in families()
    for member, law in broken(family).items()
]


@pytest.mark.parametrize(("member", "law"), MEMBERS)
def test_every_member_keeps_the_laws(member, law):
    law(member)


@pytest.mark.parametrize(("member", "law"), BROKEN)
def test_a_broken_member_is_caught(member, law):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        law(member)


@pytest.mark.parametrize("family", families())
def test_a_family_is_tried_by_broken_members_of_its_own(family):
    # A family without laws fails here, so that the others are still judged.
    assert laws(family), f"write tests/laws/{family.replace('-', '_')}.py"
    assert broken(family), f"no broken member tries the laws of {family}"
    # A law that no broken member breaks may be one that cannot fail.
    assert set(broken(family).values()) == set(laws(family))
    assert all(member.family_name == family for member in broken(family))
    assert not set(broken(family)) & set(members(family).values())


def test_a_member_that_no_law_can_run_fails():
    class Unknowable(members("rule")["manual"]):
        @classmethod
        def examples(cls, **offered):
            return ()

    with pytest.raises(AssertionError, match="no example"):
        judge(Unknowable)


@pytest.mark.slow
@pytest.mark.parametrize(("member", "law"), MEMBERS)
def test_every_example_keeps_the_laws(member, law, monkeypatch):
    monkeypatch.setattr(parameters, "THOROUGH", True)
    law(member)


@pytest.mark.slow
@pytest.mark.parametrize("member", members("guard").values(), ids=lambda member: member.name)
def test_guards_hold_for_more_victims(member):
    guard.withstands_every_attack(member, seeds=range(1, 6))
    guard.refuses_by_what_is_public(member, seeds=range(1, 11))


PAGE = Path(__file__).parents[2] / "docs" / "methods" / "adding.md"


def shown() -> dict[str, str]:
    """Return the files that the manual shows, by the class that each is judged by."""
    found, lines = {}, ""
    for example in doctest.DocTestParser().get_examples(PAGE.read_text(encoding="utf-8")):
        if example.source.startswith("judge("):
            found[example.source.strip()[len("judge(") : -1]] = lines
            lines = ""
        else:
            lines += example.source
    return found


@pytest.mark.parametrize(
    ("family", "name"),
    [("rule", "Majority"), ("masking", "Truncation"), ("guard", "WholeFile")],
)
def test_a_new_file_is_found_and_judged(family, name, tmp_path, monkeypatch):
    package = importlib.import_module(families()[family][0].package)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    module = f"{package.__name__}.{class_file(name)}"
    (tmp_path / f"{class_file(name)}.py").write_text(shown()[name], encoding="utf-8")
    try:
        member = next(m for m in members(family).values() if m.__name__ == name)
        assert member.__module__ == module
        if family != "guard":  # the page itself judges all three
            judge(member)
    finally:
        sys.modules.pop(module, None)
        vars(package).pop(class_file(name), None)


def test_a_new_file_that_is_wrong_is_caught(tmp_path, monkeypatch):
    package = importlib.import_module(families()["rule"][0].package)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    turned = shown()["Majority"].replace("level > 1e-9", "level < -1e-9")
    (tmp_path / "majority.py").write_text(turned, encoding="utf-8")
    try:
        with pytest.raises(AssertionError):
            judge(members("rule")["majority"])
    finally:
        sys.modules.pop(f"{package.__name__}.majority", None)
        vars(package).pop("majority", None)
