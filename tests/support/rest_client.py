"""A small HTTP client for tests of the REST API, with any headers."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 60


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> str:
        """The one sentence of an error."""
        (message,) = self.body["errors"]
        return message


class RestClient:
    """Sends requests to one server."""

    def __init__(self, url: str, **headers: str) -> None:
        self._place = urlsplit(url)
        self._headers = headers

    def ask(self, method: str, path: str, body: str | bytes | None = None, **headers: str) -> Answer:
        """Send a request on a connection of its own; `x_y` is the header x-y."""
        connection = http.client.HTTPConnection(self._place.hostname or "", self._place.port, timeout=TIMEOUT_S)
        named = {name.replace("_", "-"): value for name, value in (self._headers | headers).items()}
        try:
            connection.request(method, path, body, named)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Any:
        """The body of an answer that must be there."""
        answer = self.ask("GET", path, **headers)
        assert answer.status == 200, (path, answer.status, answer.content[:500])
        return answer.body
