"""Families of methods, found by looking into folders.

A *family* (sensitivity rules, table methods, masking methods, privacy models, guards, attacks …)
is a folder whose package says `FAMILY = Family("rule", Rule)`. A *member* is one file in that
folder holding one frozen dataclass below the family's base class: its fields are its parameters,
its class attributes `name` and `reference` say how it is typed and where it comes from, its
docstring says what it does. Nothing lists the members: the command line, the policy file, the
manual and the contract tests all ask the registry, which looks.
"""

from discreet.registry.annotations import describe_type
from discreet.registry.building import build, declare
from discreet.registry.declarations import (
    Declaration,
    Member,
    Parameter,
    Record,
    is_address,
    parameter,
)
from discreet.registry.finding import Family, class_file, families, find_class, members, names_of
from discreet.registry.laziness import lazy

__all__ = [
    "Declaration",
    "Family",
    "Member",
    "Parameter",
    "Record",
    "build",
    "class_file",
    "declare",
    "describe_type",
    "families",
    "find_class",
    "is_address",
    "lazy",
    "members",
    "names_of",
    "parameter",
]
