"""The policy's JSON Schema, for editors: made from the model and the registry."""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

import pydantic

from discreet.app.policy.load import APART, SECTIONS, kinds
from discreet.app.policy.model import SHARED, About, Policy, Server
from discreet.data.source import Source
from discreet.registry import Declaration, Member, Parameter, Record, families, members
from discreet.report import plain

__all__ = ["policy_schema"]


def policy_schema() -> dict[str, Any]:
    """Return the schema: data, jobs, services and members from what they declare."""
    server = Server.model_json_schema(ref_template="#/$defs/{model}")
    definitions = server.pop("$defs", {}) | {
        "Source": _parameters(Source),
        "Server": server,
        **{section.title(): _parameters(cls) for section, cls in APART.items()},
        "About": About.model_json_schema(),
    }
    for family in families():
        definitions[f"family-{family}"] = _written(members(family))
    sections = {
        section: {"type": "array", "items": {"oneOf": [_entry(c) for c in kinds(section).values()]}}
        for section in SECTIONS
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "discreet policy",
        "description": (Policy.__doc__ or "").strip(),
        "type": "object",
        "additionalProperties": False,
        "anyOf": [{"required": [section]} for section in ("data", *APART)],
        "properties": {
            "data": {"$ref": "#/$defs/Source"},
            **sections,
            **{section: {"$ref": f"#/$defs/{section.title()}"} for section in APART},
            "server": {"$ref": "#/$defs/Server"},
            "about": {"$ref": "#/$defs/About"},
            **{name: _shared(name) for name in SHARED},
            "extensions": {"type": "array", "items": {"type": "string"}},
        },
        "$defs": definitions,
    }


def _shared(name: str) -> dict[str, Any]:
    """Return what a setting at the top may be, for releases and gateways that do not say it."""
    field = Policy.model_fields[name]
    said: Any = field.annotation  # Any: what may stand there
    shape: dict[str, Any] = pydantic.TypeAdapter(said).json_schema()
    return shape | {"description": field.description or ""}


def _entry(cls: type[Member]) -> dict[str, Any]:
    shape = _parameters(cls)
    shape["properties"] = {
        "name": {"type": "string", "description": "names the output"},
        "kind": {"const": cls.name},
        **shape["properties"],
    }
    shape["required"] = ["name", "kind", *shape["required"]]
    return shape | {"title": cls.name, "description": cls.summary()}


def _written(found: Mapping[str, type[Member]]) -> dict[str, Any]:
    """Return the ways to write a member: name, {name: parameters}, {name: first parameter}."""
    alone = [name for name, cls in found.items() if not _required(cls)]
    options: list[dict[str, Any]] = [{"enum": sorted(alone)}] if alone else []
    for name, cls in found.items():
        inside: list[dict[str, Any]] = [_parameters(cls)]
        if not _required(cls):
            inside.append({"type": "null"})
        if cls.parameters() and not _required(cls) - {cls.parameters()[0].name}:
            # A mapping says parameters by name, and nothing says none of them.
            neither = {"not": {"type": ["object", "null"]}}
            inside.append({"allOf": [_parameter(cls.parameters()[0]), neither]})
        spread = _parameters(cls)
        spread["properties"] = {"name": {"const": name}, **spread["properties"]}
        spread["required"] = ["name", *spread["required"]]
        options.append(
            {
                "type": "object",
                "description": cls.summary(),
                "properties": {name: {"anyOf": inside}},
                "required": [name],
                "additionalProperties": False,
            }
        )
        options.append(spread)
    return {"anyOf": options} if options else {}


def _required(cls: type[Declaration]) -> set[str]:
    return {item.name for item in cls.parameters() if item.required}


def _parameters(cls: type[Declaration]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    twice: list[dict[str, Any]] = []
    for item in cls.parameters():
        properties[item.name] = _parameter(item)
        dashed = item.name.replace("_", "-")
        if dashed != item.name:  # both spellings are read
            properties[dashed] = properties[item.name]
            if item.required:
                twice.append({"anyOf": [{"required": [item.name]}, {"required": [dashed]}]})
    required = [item.name for item in cls.parameters() if item.required and "_" not in item.name]
    shape = {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": required,
    }
    return shape | ({"allOf": twice} if twice else {})


def _parameter(item: Parameter) -> dict[str, Any]:
    shape = _type(item.type)
    if item.help:
        shape["description"] = item.help
    if not item.required:
        shape["default"] = plain(item.default)
    limits = {
        "minimum": item.low,
        "maximum": item.high,
        "exclusiveMinimum": item.above,
        "exclusiveMaximum": item.below,
    }
    shape |= {key: limit for key, limit in limits.items() if limit is not None}
    if item.choices is not None:
        kept = {k: v for k, v in shape.items() if k in ("description", "default")}
        optional = type(None) in get_args(item.type) and None not in item.choices
        one = {"enum": [*item.choices, *([None] if optional else [])]}
        several = get_origin(item.type) is tuple
        shape = kept | ({"anyOf": [{"type": "array", "items": one}, one]} if several else one)
    return shape


def _type(kind: Any) -> dict[str, Any]:
    # Any: annotations at run time.
    plain_types = {
        int: "integer",
        float: "number",
        str: "string",
        bool: "boolean",
        type(None): "null",
    }
    if kind in plain_types:
        return {"type": plain_types[kind]}
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        # Where a member may stand, a text is its name and nothing else.
        named = any(getattr(option, "family_name", None) for option in inner)
        return {"anyOf": [_type(option) for option in inner if not (named and option is str)]}
    if origin is Literal:
        return {"enum": list(inner)}
    if (origin is tuple and len(inner) != 2) or (origin is tuple and inner[1] is not Ellipsis):
        return {
            "type": "array",
            "prefixItems": [_type(option) for option in inner],
            "minItems": len(inner),
            "maxItems": len(inner),
        }
    if origin in (list, tuple, Sequence):
        several = {"type": "array", "items": _type(inner[0])}
        # One mapping alone could be the settings of something else, so that it is not a list.
        is_mapping = get_origin(inner[0]) in (dict, Mapping)
        return several if is_mapping else {"anyOf": [several, _type(inner[0])]}
    if origin in (dict, Mapping):
        inside = _type(inner[1])
        return {"type": "object"} | ({"additionalProperties": inside} if inside else {})
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [choice.value for choice in kind]}
    if isinstance(kind, type) and issubclass(kind, Record):
        written = [_parameters(kind), *([{"type": "string"}] if kind.spelled else [])]
        return {"anyOf": written}
    if isinstance(kind, type) and issubclass(kind, Member) and kind.name:
        return _written({kind.name: kind})  # this member and no other of its family
    family = getattr(kind, "family_name", None)
    if family is not None:
        return {"$ref": f"#/$defs/family-{family}"}
    return {}
