"""The manual cannot fall behind: commands, members and public names all appear in it."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

import pytest

import discreet
from discreet.registry import families, members

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, str]:
    """The reference as the manual's build writes it."""
    folder = tmp_path_factory.mktemp("docs") / "generated"
    sys.path.insert(0, str(DOCS))
    try:
        import reference_pages

        reference_pages.write(folder)
        names = reference_pages.public_names()
    finally:
        sys.path.remove(str(DOCS))
    found = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    return found | {"names": "\n".join(names)}


def commands() -> list[str]:
    import typer.main

    from discreet.app.cli.main import build

    found: list[str] = []

    def walk(command, path):
        found.append(path)
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{path} {name}")

    walk(typer.main.get_command(build()), "discreet")
    return found


def test_every_command_has_its_usage(pages):
    for path in commands():
        assert f"# {path}\n" in pages["commands"], path
        assert f"Usage: {path}" in pages["commands"], path


def test_every_member_has_its_parameters(pages):
    for family in families():
        page = pages[f"family-{family}"]
        for name, cls in members(family).items():
            part = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
            assert f"`dc.{cls.__name__}`" in part, name
            for item in cls.parameters():
                assert f"| `{item.name}` |" in part, f"{name}: {item.name}"


def test_every_public_name_is_there(pages):
    names = pages["names"].splitlines()
    assert {"read", "Table", "Hierarchy", "InputError", "Randomness"} <= set(names)
    for name in names:
        assert f"dc.{name}" in pages["python"], name


def test_the_manual_takes_all_generated_pages():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert "reference/generated/*" in index
    assert "how-to/*" in index


def modules() -> list[str]:
    return [
        item.name
        for item in pkgutil.walk_packages(discreet.__path__, "discreet.")
        if not item.name.endswith("__main__")
    ]


@pytest.mark.parametrize("name", modules())
def test_all_says_what_is_there(name):
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", None)
    if listed is None:
        return
    assert len(set(listed)) == len(listed)
    for public in listed:
        assert hasattr(module, public), f"{name} lists {public}, which it does not have"


def test_the_foundation_shows_an_example_of_everything():
    from discreet import data

    kernel = (
        "Randomness",
        "Report",
        "InputError",
        "RefusedError",
        "InfeasibleError",
        "EngineError",
    )
    for public in (*kernel, *data.__all__):
        assert ">>>" in (getattr(discreet, public).__doc__ or ""), f"{public} shows no example"


@pytest.mark.parametrize("name", sorted(families()))
def test_every_public_item_has_an_example(name):
    for member in members(name).values():
        assert ">>>" in (member.__doc__ or ""), f"{member.__name__} shows no example"
