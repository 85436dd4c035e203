"""The registry: members found by looking, built from plain data, checked by declaration."""

import dataclasses
import importlib
import importlib.metadata
import pkgutil
import subprocess
import sys
import textwrap
from typing import ClassVar, Literal

import pytest

import discreet
from discreet import registry
from discreet.errors import InputError
from discreet.registry import Family, Member, build, building, class_file, describe_type, parameter


@dataclasses.dataclass(frozen=True)
class Shape(Member):
    """Base of the test's family."""


@dataclasses.dataclass(frozen=True)
class Ball(Shape):
    """Round."""

    name: ClassVar[str] = "ball"
    radius: float = parameter(help="how large", above=0, high=10)
    colour: Literal["red", "blue"] = "red"
    tags: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Box(Member):
    """Holds shapes."""

    name: ClassVar[str] = "box"
    first: Shape = parameter()
    rest: tuple[Shape, ...] = ()
    label: str | None = None


@pytest.fixture
def shapes(tmp_path, monkeypatch):
    """A family in a folder of its own, with two member files and one private file."""
    package = tmp_path / "toyfamily"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import dataclasses\nfrom discreet.registry import Family, Member\n"
        "@dataclasses.dataclass(frozen=True)\nclass Toy(Member):\n    '''Base.'''\n"
        "FAMILY = Family('toy', Toy, __name__)\n"
    )
    for name, cls in (("top_spin", "TopSpin"), ("kite", "Kite")):
        (package / f"{name}.py").write_text(
            textwrap.dedent(f"""
            import dataclasses
            from typing import ClassVar
            from toyfamily import Toy
            @dataclasses.dataclass(frozen=True)
            class {cls}(Toy):
                '''A {name}.'''
                name: ClassVar[str] = '{name.replace("_", "-")}'
            """)
        )
    (package / "_private.py").write_text("raise RuntimeError('must not be imported')")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("toyfamily")
    for module in [m for m in sys.modules if m.startswith("toyfamily")]:
        del sys.modules[module]


def test_members_are_found_by_looking(shapes):
    assert list(shapes.FAMILY.members()) == ["kite", "top-spin"]
    assert shapes.FAMILY.get("kite").__name__ == "Kite"


def test_a_misspelt_member_gets_a_suggestion(shapes):
    with pytest.raises(InputError) as caught:
        shapes.FAMILY.get("kitte")
    assert caught.value.code == "unknown-member"
    assert "kite" in caught.value.hint


def test_an_installed_extension_runs_only_when_enabled(shapes, monkeypatch):
    class Entry:
        name = "plane"

        def load(self):
            return shapes.Toy

    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda group: [Entry()] if group == "discreet.toy" else [],
    )
    assert "plane" not in shapes.FAMILY.members()
    assert "plane" in shapes.FAMILY.members(enable=["plane"])


@pytest.mark.parametrize(
    ("radius", "code"),
    [
        (0, "parameter-range"),
        (11, "parameter-range"),
        ("x", "parameter-type"),
        (True, "parameter-type"),
        (float("nan"), "parameter-range"),
    ],
)
def test_parameters_are_checked_when_made(radius, code):
    with pytest.raises(InputError) as caught:
        Ball(radius)
    assert caught.value.code == code
    assert caught.value.facts["parameter"] == "radius"


def test_choices_are_checked():
    with pytest.raises(InputError):
        Ball(1, colour="green")


def test_settings_are_plain_data():
    assert Ball(2.0, tags=("a",)).settings() == {
        "name": "ball",
        "radius": 2.0,
        "colour": "red",
        "tags": ["a"],
    }


def test_parameters_are_introspected():
    radius = Ball.parameters()[0]
    assert (radius.required, radius.range, radius.help) == (
        True,
        "above 0 and at most 10",
        "how large",
    )
    assert Ball.parameters()[1].choices == ("red", "blue")


@pytest.mark.parametrize(
    "data",
    [{"ball": 3}, {"ball": {"radius": 3}}, {"name": "ball", "radius": 3}, {"ball": "3"}],
)
def test_a_member_may_be_written_in_four_ways(data, monkeypatch):
    family = Family("shape", Shape, __name__)
    monkeypatch.setattr(building, "members", lambda name, enable=(): {"ball": Ball})
    assert family.base.family_name == "shape"
    box = build(Box, {"box": {"first": data, "rest": [data]}})
    assert box == Box(Ball(3.0), (Ball(3.0),)) or box.first.radius == 3


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"box": {"first": {"bal": 3}}}, ("box", "first")),
        ({"box": {"first": {"ball": {"radiu": 3}}}}, ("box", "first", "ball", "radiu")),
        ({"box": {"first": {"ball": {"radius": -3}}}}, ("box", "first", "ball", "radius")),
        ({"box": {}}, ("box",)),
        ({"box": {"first": 17}}, ("box", "first")),
    ],
)
def test_mistakes_carry_their_path(data, path, monkeypatch):
    Family("shape", Shape, __name__)
    monkeypatch.setattr(building, "members", lambda name, enable=(): {"ball": Ball})
    with pytest.raises(InputError) as caught:
        build(Box, data)
    assert caught.value.facts["path"] == path


def test_class_files_round_trip():
    assert class_file("ControlledTabularAdjustment") == "controlled_tabular_adjustment"
    assert class_file("LDiversity") == "l_diversity"


def test_types_in_words():
    assert describe_type(float) == "a number"
    assert describe_type(Literal["a", "b"]) == "one of a, b"


def test_the_package_lists_and_resolves_its_names():
    for name in dir(discreet):
        assert getattr(discreet, name) is not None
    with pytest.raises(AttributeError):
        discreet.NoSuchThing  # noqa: B018


def test_lists_are_kept_as_tuples():
    import discreet as dc

    made = dc.Suppression(never=["a/x", "b/y"])
    assert made.never == ("a/x", "b/y")
    assert made == dc.Suppression(never=("a/x", "b/y"))
    with pytest.raises(InputError, match="a list of text"):
        dc.Suppression(never=["a/x", 3])


def test_every_declared_family_is_found():
    """Families are found by reading; a declaration that is written otherwise must not be missed."""
    packages = [
        module.name
        for module in pkgutil.walk_packages(discreet.__path__, "discreet.")
        if module.ispkg and not module.name.startswith("discreet.app")
    ]
    declared = [
        family
        for package in packages
        if (family := getattr(importlib.import_module(package), "FAMILY", None)) is not None
    ]
    found = [family for folders in registry.families().values() for family in folders]
    assert {id(family) for family in declared} == {id(family) for family in found}
    assert {family.name for family in declared} == set(registry.families())


@pytest.mark.parametrize(
    ("statement", "strangers"),
    [
        ("from discreet.registry import members; members('rule')", ("tables", "microdata")),
        ("import discreet; discreet.PPercent", ("audit.rules.dominance", "microdata.models")),
        ("import discreet; discreet.TableJob", ("microdata.models", "queries.guards")),
        (
            "from discreet.tables.methods import FAMILY; FAMILY.get('suppression')",
            ("tables.methods.cell_key", "tables.methods.top_down"),
        ),
    ],
)
def test_one_family_is_imported_alone(statement, strangers):
    script = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    loaded = [name for name in done.stdout.split() if name.startswith("discreet.")]
    for stranger in strangers:
        name = f"discreet.{stranger}"
        assert not [
            m for m in loaded if m.startswith(f"{name}.") or (m == name and "." in stranger)
        ]
