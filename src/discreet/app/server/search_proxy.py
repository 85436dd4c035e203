"""The search proxy as a service on this machine: a page to search on, and JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from discreet.app.server.api_page import PAGE_HEADERS
from discreet.errors import DiscreetError, InputError
from discreet.protocols.search.backends import Found
from discreet.protocols.search.member import SearchMember
from discreet.protocols.search.proxy import Proxy

__all__ = ["build_proxy", "serve_proxy"]

_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
_LONGEST = 1000


def build_proxy(proxy: Proxy | SearchMember) -> FastAPI:
    """Return the application: `/` for people, `/search?q=…` for programs."""
    app = FastAPI(title="discreet search", docs_url=None, redoc_url=None, openapi_url=None)

    @app.middleware("http")
    async def own_machine_only(request: Request, call_next: Any) -> Response:
        # Any: Starlette's own type. Pages of strangers, which browsers would let in by a name that
        # points here, must not search with the reader's proxy.
        host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        strange = request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        own = f"http://{request.headers.get('host', '')}"
        strange |= request.headers.get("origin", own) != own
        if host not in _HOSTS or strange:
            return JSONResponse({"error": "only this machine's own pages may search"}, 403)
        answer: Response = await call_next(request)
        answer.headers["Cache-Control"] = "no-store"
        return answer

    @app.exception_handler(DiscreetError)
    def told(_: Request, error: DiscreetError) -> JSONResponse:
        return JSONResponse({"error": str(error), "code": error.code}, 400)

    @app.get("/search")
    def search(q: str = "") -> JSONResponse:
        found = proxy.search(_term(q))
        return JSONResponse(
            {
                "documents": json.loads(json.dumps(found.documents, default=str)),
                "sent": {"searches": found.searches, "terms": found.terms},
            }
        )

    @app.get("/", response_class=HTMLResponse)
    def page(q: str = "") -> HTMLResponse:
        try:
            found = proxy.search(_term(q)) if q else None
            said = ""
        except DiscreetError as error:
            found, said = None, str(error)
        return HTMLResponse(_page(q, found, said), headers=PAGE_HEADERS)

    return app


def _term(given: str) -> str:
    """Return what is searched for; errors do not repeat it."""
    if not given.strip() or len(given) > _LONGEST:
        raise InputError(
            f"a search has 1 to {_LONGEST} characters",
            code="search-length",
            hint="write /search?q=gout",
        )
    return given


def _page(term: str, found: Found | None, said: str) -> str:
    body = f"<p role='alert'>{escape(said)}</p>" if said else ""
    if found is not None:
        body = (
            f"<p>{len(found.documents):,} documents. The engine saw {found.searches} "
            f"search{'es' * (found.searches > 1)} with {found.terms} terms.</p><ol>"
        )
        for row in found.documents[:200]:
            fields = "".join(
                f"<dt>{escape(str(k))}</dt><dd>{escape(str(v))}</dd>" for k, v in row.items()
            )
            body += f"<li><dl>{fields}</dl></li>"
        body += "</ol>"
        if len(found.documents) > 200:
            body += f"<p>{len(found.documents) - 200:,} more are not shown here.</p>"
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>discreet search</title>
<meta name="viewport" content="width=device-width">
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}}
dl{{display:grid;grid-template-columns:8rem 1fr;margin:.5rem 0}}dt{{color:#555}}dd{{margin:0}}
input{{font:inherit;padding:.4rem;width:60%}}button{{font:inherit;padding:.4rem 1rem}}</style>
<main><h1>Search unseen</h1><form><label>Term <input name="q" value="{escape(term, quote=True)}"
autofocus></label> <button>Search</button></form>{body}</main></html>"""


def serve_proxy(proxy: Proxy | SearchMember, port: int, *, started: Callable[[int], None]) -> None:
    """Serve on this machine alone until told to stop; `started` gets the port."""
    import socket

    import uvicorn

    with socket.create_server(("127.0.0.1", port)) as listening, proxy:
        config = uvicorn.Config(
            build_proxy(proxy),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
        )
        started(int(listening.getsockname()[1]))
        uvicorn.Server(config).run(sockets=[listening])
