"""The page at /docs: what can be called, and a place to try it; nothing is loaded from elsewhere."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["PAGE_HEADERS", "api_page"]

#: The page may run its own script and style, talk to this server, and do nothing else.
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1.5rem;color:#1c2b2d}
h1{margin:0}h2{margin-top:2rem;border-bottom:1px solid #cfdcdd}code,pre,textarea,td.n{font-family:ui-monospace,monospace}
.call{border:1px solid #cfdcdd;border-radius:.4rem;margin:.8rem 0;padding:.6rem 1rem}
.verb{display:inline-block;min-width:3.2rem;color:#fff;background:#0b6e75;border-radius:.2rem;text-align:center;font-size:.85rem;padding:.1rem .3rem}
table{border-collapse:collapse}td,th{border-bottom:1px solid #e3ebec;padding:.2rem .7rem .2rem 0;text-align:left;vertical-align:top}
textarea{width:100%;box-sizing:border-box}label{margin-right:1rem}button{background:#0b6e75;color:#fff;border:0;border-radius:.3rem;padding:.4rem 1rem;font:inherit}
.refused{color:#8a1c1c}pre{background:#f3f7f7;padding:.6rem;overflow:auto}small{color:#52666a}
"""
_SCRIPT = """
const at=id=>document.getElementById(id);
async function token(){const given=new TextEncoder().encode(at('name').value+':'+at('password').value);
 const reply=await fetch('/token',{method:'POST',headers:{Authorization:'Basic '+btoa(String.fromCharCode(...given))}});
 if(!reply.ok)throw new Error((await reply.json()).message);return (await reply.json()).token;}
function table(columns,rows){const t=document.createElement('table'),h=t.insertRow();
 for(const c of columns){const th=document.createElement('th');th.textContent=c;h.append(th);}
 for(const r of rows){const line=t.insertRow();for(const v of r)line.insertCell().textContent=v===null?'':v;}return t;}
async function run(what){const out=at('answer');out.className='';out.textContent='…';try{
 const bearer={Authorization:'Bearer '+await token()};let reply;
 if(what==='budget')reply=await fetch('/budget',{headers:bearer});
 else reply=await fetch('/ask',{method:'POST',headers:{...bearer,'Content-Type':'application/json'},
  body:JSON.stringify({sql:(what==='explain'?'EXPLAIN ':'')+at('sql').value,errors:at('errors').checked})});
 const body=await reply.json();out.textContent='';
 if(!reply.ok){out.className='refused';out.textContent=body.message+(body.hint?' — '+body.hint:'')+' ['+body.error+']';return;}
 if(what==='budget')out.append(body.length?table(Object.keys(body[0]),body.map(Object.values)):'no budget: answers are not noisy');
 else{out.append(table(body.columns,body.rows));const p=document.createElement('p');p.textContent=body.notices.join('; ');out.append(p);}
}catch(error){out.className='refused';out.textContent=error.message;}}
for(const b of document.querySelectorAll('button'))b.addEventListener('click',()=>run(b.value));
"""


def api_page(openapi: Mapping[str, Any]) -> str:
    """Return the page of an OpenAPI document. Any: parts of it are of many shapes.

    >>> "GET" in api_page({"info": {"title": "x", "version": "1"}, "paths": {"/a": {"get": {}}}})
    True
    """
    info = openapi["info"]
    calls = "".join(
        _call(verb, path, call, openapi)
        for path, verbs in openapi["paths"].items()
        for verb, call in verbs.items()
    )
    # A page with an example statement in it, not a statement.
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{_text(info["title"])}</title><style>{_STYLE}</style></head><body>
<h1>{_text(info["title"])} <small>{_text(info["version"])}</small></h1>
<p>{_text(info.get("summary", ""))}</p>
<h2>Try it</h2>
<p><label>name <input id="name" autocomplete="username"></label>
<label>password <input id="password" type="password" autocomplete="current-password"></label>
<label><input id="errors" type="checkbox"> columns of errors</label></p>
<textarea id="sql" rows="3">SELECT COUNT(*) FROM people</textarea>
<p><button value="ask">Ask</button> <button value="explain">Explain, at no cost</button>
<button value="budget">Budget</button></p>
<div id="answer" role="status"></div>
<h2>Calls</h2>{calls}
<p><small>The same as a machine reads it: <a href="/openapi.json">/openapi.json</a></small></p>
<script>{_SCRIPT}</script></body></html>"""  # noqa: S608


def _call(verb: str, path: str, call: Mapping[str, Any], openapi: Mapping[str, Any]) -> str:
    told = _text(call.get("description") or call.get("summary") or "")
    body = call.get("requestBody", {}).get("content", {}).get("application/json", {})
    replies = "".join(
        f"<tr><td class=n>{_text(code)}</td><td>{_text(reply.get('description', ''))}</td></tr>"
        for code, reply in call.get("responses", {}).items()
    )
    return (
        f'<div class="call"><span class="verb">{_text(verb.upper())}</span> <code>{_text(path)}</code>'
        f"<p>{told}</p>{_fields(body.get('schema', {}), openapi)}"
        f"<details><summary>replies</summary><table>{replies}</table></details></div>"
    )


def _fields(schema: Mapping[str, Any], openapi: Mapping[str, Any]) -> str:
    """Return the fields of a body, followed to where they are defined."""
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    found = openapi.get("components", {}).get("schemas", {}).get(name, schema)
    rows = []
    for field, facts in found.get("properties", {}).items():
        kind = facts.get("type") or " or ".join(p.get("type", "") for p in facts.get("anyOf", ()))
        told = facts.get("description", "")
        if facts.get("examples"):
            told += " e.g. " + json.dumps(facts["examples"][0], ensure_ascii=False)
        need = "" if field in found.get("required", ()) else " (may be left out)"
        rows.append(
            f"<tr><td class=n>{_text(field)}</td><td>{_text(kind + need)}</td><td>{_text(told)}</td></tr>"
        )
    return f"<table>{''.join(rows)}</table>" if rows else ""


def _text(value: object) -> str:
    return html.escape(str(value))
