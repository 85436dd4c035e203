"""Laws of jobs, of their form: what a job records can be read as a policy and is the same job."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, ClassVar

import discreet as dc
from discreet.data.job import Job
from discreet.registry import Member, build, members
from tests.laws import people
from tests.laws.parameters import examples

#: What the people of the laws have for jobs, and for the methods that jobs are told.
OFFERED: dict[str, Any] = {
    "by": ("region",),
    "measure": "pay",
    "sensitive": "pay",
    "rules": (dc.MinimumFrequency(3),),
}
METHODS: dict[str, Any] = {
    "column": "ill",
    "columns": ("pay",),
    "bounds": {"pay": (0.0, 100.0)},
}


def tried(member: type[Any]) -> tuple[Any, ...]:
    """Return the examples; what a parameter asks of a family is some member of that family."""
    wanted = dict(OFFERED)
    for item in member.parameters():
        kinds = [item.type, *typing.get_args(item.type)]
        family = next((k.family_name for k in kinds if hasattr(k, "family_name")), None)
        if item.required and family is not None:
            some = member_of(family)
            wanted[item.name] = (some,) if typing.get_origin(item.type) is tuple else some
        elif item.required and item.file:
            wanted[item.name] = f"{item.name}.csv"
    return examples(member, **wanted)


def member_of(family: str) -> Member:
    """Return an example of the first member that the people of the laws suffice for."""
    # Private ones need declared domains, which the people of the laws do not have.
    known = members(family).values()
    for member in sorted(known, key=lambda one: getattr(one, "protection", "") == "dp"):
        try:
            return member.examples(**METHODS)[0]
        except dc.InputError:
            continue
    raise AssertionError(f"no {family} can be tried")


def its_settings_say_all(member: type[Job]) -> None:
    for job in tried(member):
        settings = job.settings()
        assert settings["name"] == member.name
        assert set(settings) == {"name", *(item.name for item in member.parameters())}
        given = {
            item.name: spelled(getattr(job, item.name))
            for item in member.parameters()
            if getattr(job, item.name) != item.default
        }
        again = build(member, {member.name: given})
        assert again == job, f"{job} reads as {again}"


def spelled(value: Any) -> Any:
    """Return a parameter as a policy spells it."""
    if isinstance(value, tuple):
        return [spelled(item) for item in value]
    return value.settings() if hasattr(value, "settings") else value


def it_looks_at_data_without_touching_it(member: type[Job]) -> None:
    data = people.dataset(people.frame(1))
    before = data.arrow()
    for job in tried(member):
        job.check(job.open(data))
        assert data.arrow().equals(before), f"{job} changed its input"


LAWS = (its_settings_say_all, it_looks_at_data_without_touching_it)


@dataclasses.dataclass(frozen=True)
class Reticent(Job):
    """Does not record what it was told."""

    name: ClassVar[str] = "reticent"
    by: tuple[str, ...] = ()

    def settings(self) -> dict[str, Any]:
        return {"name": self.name}

    def perform(self, data: Any, *, rng: Any, progress: Any) -> Any:
        raise NotImplementedError

    def write(self, result: Any, place: Any) -> None:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Grabbing(Reticent):
    """Takes a column away from whoever gave it the data."""

    name: ClassVar[str] = "grabbing"

    def open(self, data: Any) -> Any:
        object.__setattr__(data, "relation", data.select(data.columns[:-1]).relation)
        return data


BROKEN = {
    Reticent: its_settings_say_all,
    Grabbing: it_looks_at_data_without_touching_it,
}
