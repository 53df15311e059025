"""Access rules: decisions about the Host, the Origin and the token of a request. Pure.

- A page of another site cannot reach the server through a name of its own (DNS rebinding): the Host must be an address
  or a known name.
- A page of another site cannot press a button (CSRF) or read an answer: an Origin must be the server's own.
- Where a token is set it guards everything but probes: as a bearer token, or in a cookie that the printed link brought.
"""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"same-origin", "none"})


@dataclass(frozen=True)
class Caller:
    """The parts of a request that tell its caller; an absent header is empty."""

    method: str
    host: str
    origin: str = ""
    fetch_site: str = ""
    authorization: str = ""
    cookies: str = ""
    #: The token in the address of the printed link.
    link_token: str = ""
    #: Whether it asks for `/health` or `/ready`, which tell the state alone.
    is_probe: bool = False


@dataclass(frozen=True)
class Refusal:
    """The request is not answered."""

    status: int
    message: str


@dataclass(frozen=True)
class Welcome:
    """The printed link was opened: the cookie is set, and the page opened again without the token."""

    cookie: str


@dataclass(frozen=True)
class AccessRules:
    """The rules of one server.

    >>> rules = AccessRules(frozenset({"localhost"}), 8081)
    >>> rules.judge(Caller("GET", "localhost:8081")) is None
    True
    >>> rules.judge(Caller("POST", "localhost:8081", origin="http://evil.example")).status
    403
    """

    names: frozenset[str]
    port: int
    token: str | None = None

    def judge(self, caller: Caller) -> Refusal | Welcome | None:
        """Decide about a request; None: it is answered."""
        if not self._is_known_host(caller.host):
            return Refusal(
                400, "The Host of the request is not a name of this server: use its address, or set rest.address."
            )
        if caller.origin and not _is_own_origin(caller.origin, caller.host):
            return Refusal(403, "Requests of other sites are refused: the Origin is not this server.")
        if caller.method not in _READING and caller.fetch_site and caller.fetch_site not in _OWN_SITES:
            return Refusal(403, "Requests of other sites are refused.")
        return None if caller.is_probe and caller.method in _READING else self._judge_token(caller)

    def _judge_token(self, caller: Caller) -> Refusal | Welcome | None:
        if self.token is None or self._is_token(_bearer(caller.authorization)):
            return None
        if self._is_token(_cookie(caller.cookies, self.cookie_name)):
            return None
        if caller.method == "GET" and caller.link_token and self._is_token(caller.link_token):
            return Welcome(f"{self.cookie_name}={self.token}; HttpOnly; SameSite=Strict; Path=/")
        return Refusal(
            401, "A token is required: open the link that the driver printed, or send it as 'Authorization: Bearer'."
        )

    @property
    def cookie_name(self) -> str:
        """The cookie's name has the port: browsers send the cookies of a host to all its ports."""
        return f"rekindle-{self.port}"

    def _is_known_host(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name.lower() in self.names or _is_address(name)

    def _is_token(self, given: str) -> bool:
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_own_origin(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower() and not parts.path


def _bearer(authorization: str) -> str:
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _cookie(cookies: str, name: str) -> str:
    try:
        found = SimpleCookie(cookies).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""
