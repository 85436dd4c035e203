"""What a policy file may say. The parts that name methods come from the registry."""

from __future__ import annotations

from typing import Any, Literal

import pydantic

from discreet.data.job import Job
from discreet.data.schema import Role, Type

__all__ = ["HierarchySource", "Policy", "Source"]


class _Part(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class HierarchySource(_Part):
    """A hierarchy of an attribute: from a file, from nested names, from intervals, or by rarity."""

    file: str | None = pydantic.Field(None, description="a .hrc, ARX or child,parent file")
    format: Literal["hrc", "arx", "pairs"] | None = pydantic.Field(
        None, description="how to read the file; found from its name and content if left out"
    )
    levels: dict[str, Any] | None = pydantic.Field(None, description="nested names, the root first")
    widths: list[float] | None = pydantic.Field(
        None, description="widths of intervals, one per level, each a multiple of the one before"
    )
    cuts: list[float] | None = pydantic.Field(None, description="cut points of intervals")
    rare: int | None = pydantic.Field(None, ge=1, description="merge values rarer than this")
    total: str = pydantic.Field("Total", description="the name of the root")

    @pydantic.model_validator(mode="after")
    def _one_source(self) -> HierarchySource:
        given = [
            n for n in ("file", "levels", "widths", "cuts", "rare") if getattr(self, n) is not None
        ]
        if len(given) != 1:
            raise ValueError("give exactly one of file, levels, widths, cuts, rare")
        return self


class Source(_Part):
    """Where the records are and what their columns mean."""

    source: str = pydantic.Field(description="a file, postgresql://…#table or spark://…#table")
    name: str | None = pydantic.Field(None, description="the relation's name in SQL")
    engine: str | None = pydantic.Field(
        None, description="where files are read; DuckDB if left out"
    )
    roles: dict[str, Role] = pydantic.Field(default_factory=dict)
    types: dict[str, Type] = pydantic.Field(default_factory=dict)
    hierarchies: dict[str, HierarchySource | list[HierarchySource]] = pydantic.Field(
        default_factory=dict
    )
    unit: str | None = pydantic.Field(
        None, description="the column that says to whom a row belongs"
    )
    weight: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None


class Policy(_Part):
    """What a curator decided: data, releases, gateways."""

    data: Source
    #: Filled from the document's `releases` and `gateways` by the registry: name → job.
    releases: dict[str, Job] = pydantic.Field(default_factory=dict)
    gateways: dict[str, Job] = pydantic.Field(default_factory=dict)
    extensions: list[str] = pydantic.Field(
        default_factory=list, description="installed extensions that this policy allows to run"
    )
