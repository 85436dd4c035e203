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

    @pydantic.model_validator(mode="before")
    @classmethod
    def _file_alone(cls, given: Any) -> Any:  # Any: what the policy says, before it is checked
        return {"file": given} if isinstance(given, str) else given

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


class UserEntry(_Part):
    """Somebody who may ask; `discreet user NAME` makes the two secrets from a password."""

    roles: list[str] = pydantic.Field(default_factory=lambda: ["analyst"])
    password: str | None = pydantic.Field(None, repr=False, description="argon2 hash, for HTTP")
    scram: str | None = pydantic.Field(
        None, repr=False, description="SCRAM-SHA-256 verifier, for PostgreSQL's protocol"
    )


class Server(_Part):
    """Where gateways are served, and to whom."""

    host: str = "127.0.0.1"
    port: int = pydantic.Field(5433, ge=0, le=65535, description="PostgreSQL's protocol")
    http_port: int = pydantic.Field(8433, ge=0, le=65535, description="HTTP/JSON")
    certificate: str | None = pydantic.Field(None, description="PEM file; self-signed if left out")
    key: str | None = pydantic.Field(None, description="PEM file of the private key")
    rate: float = pydantic.Field(50.0, gt=0, description="statements per second and user")
    burst: int = pydantic.Field(200, ge=1, description="statements a user may send at once")
    statement_timeout: float | None = pydantic.Field(
        60.0, gt=0, description="seconds after which a statement is ended; null for no limit"
    )
    workers: int = pydantic.Field(
        1, ge=1, le=64, description="processes; more than one needs a PostgreSQL ledger"
    )
    users: dict[str, UserEntry] = pydantic.Field(default_factory=dict)


class Policy(_Part):
    """What a curator decided: data, releases, gateways."""

    data: Source
    #: Filled from the document's `releases` and `gateways` by the registry: name → job.
    releases: dict[str, Job] = pydantic.Field(default_factory=dict)
    gateways: dict[str, Job] = pydantic.Field(default_factory=dict)
    server: Server = pydantic.Field(default_factory=Server)
    extensions: list[str] = pydantic.Field(
        default_factory=list, description="installed extensions that this policy allows to run"
    )
