"""The first thing that a request meets: the access rules, the headers of every answer, and the size of its body."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from rekindle.web.access_rules import AccessRules, Caller, Refusal, Welcome
from rekindle.web.json_responses import error_response

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: No answer is kept by a browser, framed by another page, or guessed to be of another type.
_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
)
_LINK_PARAMETER = "token"


class Guard:
    """ASGI middleware: lets through what the rules allow."""

    def __init__(self, app: ASGIApp, rules: AccessRules, probes: frozenset[str] = frozenset()) -> None:
        self._app = app
        self._rules = rules
        self._probes = probes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on one request."""
        if scope["type"] != "http":
            return
        send = _with_headers(send)
        verdict = self._rules.judge(_caller(scope, is_probe=scope["path"] in self._probes))
        match verdict:
            case Refusal():
                await _refused(verdict)(scope, receive, send)
            case Welcome():
                await _welcome(scope, verdict)(scope, receive, send)
            case None:
                await self._app(scope, receive, send)


def _caller(scope: Scope, *, is_probe: bool) -> Caller:
    from starlette.datastructures import Headers

    headers: Headers = Headers(scope=scope)
    query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    return Caller(
        method=scope["method"],
        host=headers.get("host", ""),
        origin=headers.get("origin", ""),
        fetch_site=headers.get("sec-fetch-site", ""),
        authorization=headers.get("authorization", ""),
        cookies=headers.get("cookie", ""),
        link_token=query.get(_LINK_PARAMETER, ""),
        is_probe=is_probe,
    )


def _refused(refusal: Refusal) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
    return error_response(refusal.status, refusal.message, headers)


def _welcome(scope: Scope, welcome: Welcome) -> Response:
    """Set the cookie, and let the browser open the same page without the token.

    The page does that, not a redirect: after a click on another site a redirect would come without the strict cookie.
    """
    from starlette.responses import HTMLResponse

    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    rest = urlencode([(name, value) for name, value in query if name != _LINK_PARAMETER])
    target = escape(scope["path"] + (f"?{rest}" if rest else ""), quote=True)
    head = '<!doctype html><title>Rekindle</title><link rel="icon" href="data:,">'  # else browsers ask for one
    page = f'{head}<meta http-equiv="refresh" content="0; url={target}">'
    return HTMLResponse(page, headers={"Set-Cookie": welcome.cookie})


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message.get("headers", [])}
            extra = [header for header in _HEADERS if header[0] not in present]
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await send(message)

    return sending
