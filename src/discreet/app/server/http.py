"""HTTP/JSON: the same desk for programs that do not speak PostgreSQL's protocol."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import json
import logging
import time
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Annotated, Any

import pydantic
from fastapi import Depends, FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
)
from starlette.exceptions import HTTPException

import discreet
from discreet.app.server.api_page import PAGE_HEADERS, api_page
from discreet.app.server.desk import Attempts, Reply, Running, Speaker, User
from discreet.errors import DiscreetError, RefusedError
from discreet.report import plain

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from discreet.app.server.metrics import Metrics

__all__ = ["Tokens", "build_http"]

log = logging.getLogger("discreet.server.http")

_TOKEN_SECONDS = 3600
#: Statements are short; a body larger than this is not read to its end.
_LARGEST = 1 << 20


class Question(pydantic.BaseModel):
    """A statement and the values of its parameters ($1, $2, …)."""

    model_config = pydantic.ConfigDict(extra="forbid")
    sql: str = pydantic.Field(
        min_length=1, max_length=100_000, examples=["SELECT COUNT(*) FROM people"]
    )
    parameters: list[str | int | float | bool | None] = pydantic.Field(
        default_factory=list, max_length=1000
    )
    errors: bool = pydantic.Field(
        default=False, description="add the 95 % error of each number as a column x_error_95"
    )


class Answered(pydantic.BaseModel):
    """An answer: what it is, its rows, and what it cost."""

    kind: str = pydantic.Field(description="exact, interval or noisy")
    columns: list[str]
    types: list[str]
    rows: list[list[Any]]
    notices: list[str]
    facts: dict[str, Any]


class Failure(pydantic.BaseModel):
    """Why there is no answer."""

    error: str = pydantic.Field(description="the stable code")
    message: str
    hint: str | None = None


class Budget(pydantic.BaseModel):
    """What is left of one budget."""

    relation: str
    scope: str = pydantic.Field(description="user or dataset")
    period: str = pydantic.Field(description="the period it holds for; empty if for ever")
    budget: float
    spent: float
    left: float
    questions_left: int = pydantic.Field(description="how many more counts it holds")


class Token(pydantic.BaseModel):
    """A key to the other calls, for an hour."""

    token: str
    expires: int


class Tokens:
    """Signed, expiring tokens; nothing is stored, so every process with the key accepts them."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def issue(self, user: str) -> Token:
        """Return a token for a user."""
        expires = int(time.time()) + _TOKEN_SECONDS
        body = base64.urlsafe_b64encode(json.dumps([user, expires]).encode()).decode()
        return Token(token=f"{body}.{self._sign(body)}", expires=expires)

    def user(self, token: str) -> str | None:
        """Return whose token it is; None if it is false or old."""
        body, _, signature = token.partition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(body).encode()):
            return None
        user, expires = json.loads(base64.urlsafe_b64decode(body))  # signed, so it is ours
        return str(user) if expires > time.time() else None

    def _sign(self, body: str) -> str:
        return hmac.digest(self._key, body.encode(), "sha256").hex()


class _UnauthorizedError(Exception):
    pass


_FAILURES: dict[int | str, dict[str, Any]] = {
    400: {"model": Failure, "description": "The body is not JSON"},
    401: {"model": Failure, "description": "No valid token"},
    403: {"model": Failure, "description": "Refused to protect someone, or the role is missing"},
    409: {"model": Failure, "description": "No safe answer exists"},
    413: {"model": Failure, "description": "The body is too large"},
    422: {"model": Failure, "description": "The statement is mistaken"},
    429: {"model": Failure, "description": "Too many statements or attempts"},
    500: {"model": Failure, "description": "The server failed; its log says the kind"},
    502: {"model": Failure, "description": "The engine failed"},
}


async def _asking(request: Request, authorization: Annotated[str | None, Header()] = None) -> User:
    """Return whose token comes with a request."""
    scheme, _, token = (authorization or "").partition(" ")
    name = request.app.state.tokens.user(token) if scheme.lower() == "bearer" else None
    user: User | None = request.app.state.users.get(name)
    if user is None:
        raise _UnauthorizedError
    return user


# Annotations are read as text, so what they name must stand at the top of the module.
Asking = Annotated[User, Depends(_asking)]


def build_http(
    speaker: Speaker,
    users: Mapping[str, User],
    pool: Executor,
    tokens: Tokens,
    metrics: Metrics,
    attempts: Attempts | None = None,
    seconds: float | None = None,
) -> FastAPI:
    """Return the application; a statement that takes more `seconds` is ended."""
    app = FastAPI(
        title="discreet",
        version=discreet.__version__,
        summary="Statistical SQL in, protected answers out.",
        docs_url=None,  # FastAPI's own page loads its scripts from a host on the internet
        redoc_url=None,
    )

    app.state.users, app.state.tokens = users, tokens
    attempts = attempts or Attempts()
    # Hashing is slow and takes memory on purpose: a few at a time, and never in statements' way.
    hashing = asyncio.Semaphore(2)
    app.add_middleware(_Bounded)

    async def prove(request: Request, authorization: str | None) -> str:
        """Return whose name and password come with a request."""
        name, password = _basic(authorization)
        host = request.client.host if request.client is not None else ""
        if not attempts.allowed(host, name):
            raise RefusedError(
                "too many failed attempts", code="rate-limited", hint="wait a minute"
            )
        async with hashing:
            right = await asyncio.to_thread(_verify, users.get(name), password)
        if not right:
            attempts.failed(host, name)
            raise _UnauthorizedError
        attempts.succeeded(host, name)
        return name

    @app.post("/token", responses={401: _FAILURES[401], 429: _FAILURES[429]})
    async def token(
        request: Request, authorization: Annotated[str | None, Header()] = None
    ) -> Token:
        """Exchange name and password (HTTP Basic) for a token."""
        return tokens.issue(await prove(request, authorization))

    @app.post("/ask", responses=_FAILURES)
    async def ask(question: Question, user: Asking) -> Answered:
        """Answer a statement. `EXPLAIN SELECT …` tells cost and error without spending."""
        parameters = tuple(question.parameters)
        at_hand = speaker.recall(question.sql, user, parameters, errors=question.errors)
        if at_hand is not None:
            return _answered(at_hand)
        running = Running(pool, speaker, question.sql, user, parameters, errors=question.errors)
        return _answered(await running.reply(seconds))

    @app.get("/relations", responses={401: _FAILURES[401], 403: _FAILURES[403]})
    async def relations(user: Asking) -> dict[str, dict[str, str]]:
        """Tell the relations that may be asked about, and their columns."""
        return speaker.relations(user)

    @app.get("/budget", responses={401: _FAILURES[401], 403: _FAILURES[403]})
    async def budget(user: Asking) -> list[Budget]:
        """Tell what is left of the user's budgets, and how many more questions they hold."""
        found = await asyncio.get_running_loop().run_in_executor(pool, speaker.budget, user)
        return [Budget(**line) for line in found.to_pylist()]

    @app.get("/", include_in_schema=False)
    async def start() -> RedirectResponse:
        return RedirectResponse("/docs")

    @app.get("/docs", include_in_schema=False, response_class=HTMLResponse)
    async def docs() -> HTMLResponse:
        return HTMLResponse(api_page(app.openapi()), headers=PAGE_HEADERS)

    @app.get("/health", response_class=PlainTextResponse)
    async def health() -> str:
        """Tell that the process is up."""
        return "ok\n"

    @app.get("/metrics", response_class=PlainTextResponse, responses={401: _FAILURES[401]})
    async def measured(
        request: Request, authorization: Annotated[str | None, Header()] = None
    ) -> str:
        """Tell counts and times, without values, in Prometheus' format.

        From another machine it needs a token, or a user's name and password (HTTP Basic).
        """
        if not _is_local(request):
            scheme, _, _ = (authorization or "").partition(" ")
            if scheme.lower() == "basic":
                await prove(request, authorization)
            else:
                await _asking(request, authorization)
        return metrics.render()

    _handle_errors(app)
    return app


def _is_local(request: Request) -> bool:
    """Whether a request comes from this machine, and not through a proxy on it."""
    host = request.client.host if request.client is not None else ""
    passed_on = {"forwarded", "x-forwarded-for", "x-real-ip", "via"} & set(request.headers)
    return not passed_on and host in ("127.0.0.1", "::1", "localhost")


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(DiscreetError)
    async def ours(_: Request, error: DiscreetError) -> JSONResponse:
        # Facts may name columns the curator knows; clients get code, message and hint.
        body = {"error": error.code, "message": error.message, "hint": error.hint}
        status = 429 if error.code == "rate-limited" else error.http_status
        return JSONResponse(body, status_code=status)

    @app.exception_handler(_UnauthorizedError)
    async def stranger(_: Request, __: Exception) -> JSONResponse:
        body = {"error": "unauthorized", "message": "no valid token", "hint": "POST /token first"}
        return JSONResponse(body, status_code=401, headers={"WWW-Authenticate": "Bearer"})

    @app.exception_handler(HTTPException)
    async def plain_http(_: Request, error: HTTPException) -> JSONResponse:
        words = {404: "not-found", 405: "method-not-allowed", 413: "too-large"}
        code = words.get(error.status_code, "http-error")
        body = {"error": code, "message": error.detail, "hint": None}
        return JSONResponse(body, status_code=error.status_code, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        body = {"error": "malformed-request", "message": f"{where}: {first['msg']}", "hint": None}
        return JSONResponse(body, status_code=400 if first["type"] == "json_invalid" else 422)


class _Bounded:
    """Around everything: bodies end at a size, and a failure tells its kind and nothing else.

    What an unexpected error says may quote a record, so neither client nor log may see it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        size, begun = 0, False

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > _LARGEST:
                # Of this kind, because FastAPI takes any other for a body that is not JSON.
                raise HTTPException(413, "the body is too large")
            return message

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, bounded, sending)
        except Exception as error:
            log.error("internal error", extra={"kind": type(error).__name__})
            if not begun:
                body = {"error": "internal", "message": "internal error", "hint": None}
                await JSONResponse(body, status_code=500)(scope, receive, send)


def _answered(reply: Reply) -> Answered:
    table = reply.table
    return Answered(
        kind=reply.kind,
        columns=table.column_names,
        types=[str(field.type) for field in table.schema],
        rows=[
            list(plain(row)) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)
        ],
        notices=list(reply.notices),
        facts=plain(reply.facts),
    )


def _basic(authorization: str | None) -> tuple[str, str]:
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        raise _UnauthorizedError
    try:
        name, _, password = base64.b64decode(encoded, validate=True).decode("utf-8").partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise _UnauthorizedError from None
    return name, password


def _verify(user: User | None, password: str) -> bool:
    """Check a password; a stranger costs as much time as a user."""
    import argon2

    hasher = argon2.PasswordHasher()
    known = user is not None and user.password is not None
    try:
        hasher.verify(user.password if user is not None and user.password else _nobody(), password)
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False
    return known


_NOBODY: list[str] = []


def _nobody() -> str:
    """Return the hash of a password that nobody has."""
    import os

    import argon2

    if not _NOBODY:
        _NOBODY.append(argon2.PasswordHasher().hash(os.urandom(32).hex()))
    return _NOBODY[0]
