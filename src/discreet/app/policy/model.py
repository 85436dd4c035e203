"""What a policy file may say. Data, jobs and services are declared where they are defined."""

from __future__ import annotations

from typing import Literal

import pydantic

from discreet.data.job import Job
from discreet.data.service import Service
from discreet.data.source import Source
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.search.declaration import SearchPolicy

__all__ = ["SHARED", "About", "Policy", "Server", "UserEntry"]

#: Settings at the top of a policy that releases and gateways have unless they say otherwise.
SHARED = ("ledger", "snapshot", "sign", "audience", "conditions")


class _Part(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


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


class About(_Part):
    """What the hand-over document of every release says besides what the release states itself."""

    # A year stands without quotes: `period: 2024`.
    model_config = pydantic.ConfigDict(coerce_numbers_to_str=True)

    title: str = pydantic.Field("", max_length=200)
    purpose: str = pydantic.Field("", max_length=4000, description="what the data are for")
    source: str = pydantic.Field("", max_length=4000, description="where the records come from")
    period: str = pydantic.Field("", max_length=200, description="the time they speak of")
    contact: str = pydantic.Field("", max_length=400, description="who answers questions")
    legal_basis: str = pydantic.Field("", max_length=4000)
    conditions: str = pydantic.Field("", max_length=4000, description="of use, for who receives it")
    units: dict[str, str] = pydantic.Field(
        default_factory=dict, max_length=100, description="of measures: {turnover: thousand EUR}"
    )
    pdf: bool | None = pydantic.Field(
        None,
        description="write a PDF beside the HTML page; left out, where the extra `documents` is "
        "installed",
    )


class Policy(_Part):
    """What a curator decided: data, releases, reports, gateways, retrieval, and what parties share."""

    #: This and the next four are built by the registry: name → job or service.
    data: Source
    releases: dict[str, Job] = pydantic.Field(default_factory=dict)
    reports: dict[str, Job] = pydantic.Field(default_factory=dict)
    gateways: dict[str, Service] = pydantic.Field(default_factory=dict)
    retrieval: dict[str, Service] = pydantic.Field(default_factory=dict)
    joint: JointPolicy | None = None
    search: SearchPolicy | None = None
    server: Server = pydantic.Field(default_factory=Server)
    about: About | None = pydantic.Field(
        None, description="with it, every release comes with a hand-over document"
    )
    ledger: str | None = pydantic.Field(
        None,
        description="the memory that every release is judged by and recorded in, unless it names "
        "another; gateways share it",
    )
    snapshot: str | None = pydantic.Field(
        None, description="name of this state of the records, for every release and gateway"
    )
    sign: str | None = pydantic.Field(None, description="key that signs every manifest")
    audience: Literal["public", "controlled"] | None = pydantic.Field(
        None, description="who receives the releases: everybody, or those who accept conditions"
    )
    conditions: list[str] | None = pydantic.Field(
        None, description="what a receiver accepts, where the audience is controlled"
    )
    extensions: list[str] = pydantic.Field(
        default_factory=list, description="installed extensions that this policy allows to run"
    )
