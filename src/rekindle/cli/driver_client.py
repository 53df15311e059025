"""Asks a driver over its REST API, with the standard library alone and never through a proxy."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rekindle.cli.exit_codes import CommandError, ExitCode

_TIMEOUT_S = 30.0
#: A driver sends something at least every 15 s; one that is silent for longer is gone.
_SILENCE_S = 60.0
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class DriverClient:
    """One driver: its address, and its token if it has one."""

    url: str
    token: str | None = field(default=None, repr=False)

    @classmethod
    def at(cls, address: str, token: str | None = None) -> DriverClient:
        """The driver at an address as people write it; a printed link brings its token.

        >>> DriverClient.at("localhost:8081").url, DriverClient.at("http://host:1/?token=abc").token
        ('http://localhost:8081', 'abc')
        """
        parts = urlsplit(address if "://" in address else f"http://{address}")
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
            raise CommandError(f"'{address}' is no address of a driver: write http://host:port.", ExitCode.USAGE)
        linked = parse_qs(parts.query).get("token", [None])[0]
        return cls(f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", token or linked)

    def get(self, path: str) -> Any:
        """The answer to a question."""
        return self._ask("GET", path)

    def post(self, path: str, body: Any) -> Any:
        """The answer to a request that starts something."""
        return self._ask("POST", path, json.dumps(body))

    def patch(self, path: str) -> Any:
        """The answer to a request that changes something."""
        return self._ask("PATCH", path)

    def events(self, job_id: str) -> Iterator[tuple[str, Any]]:
        """The events about a job, by name, until the driver ends."""
        with closing(self._connection(_SILENCE_S)) as connection:
            response = self._response(connection, "GET", f"/events?job={job_id}", None)
            name = ""
            try:
                for line in response:
                    text = line.decode().rstrip("\r\n")
                    if text.startswith("event: "):
                        name = text.removeprefix("event: ")
                    elif text.startswith("data: "):
                        yield name, json.loads(text.removeprefix("data: "))
            except (OSError, http.client.HTTPException):  # the driver has ended
                return

    def _ask(self, method: str, path: str, body: str | None = None) -> Any:
        with closing(self._connection(_TIMEOUT_S)) as connection:
            content = self._read(self._response(connection, method, path, body))
        return json.loads(content) if content else None

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme], timeout=timeout_s)

    def _response(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: str | None
    ) -> http.client.HTTPResponse:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            connection.request(method, urlsplit(self.url).path + path, body, headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise self._silent(error) from None
        if response.status >= 300:
            raise self._refused(response.status, self._read(response))
        return response

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        try:
            return response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._silent(error) from None

    def _silent(self, error: Exception) -> CommandError:
        why = str(error) or type(error).__name__
        return CommandError(f"Nobody answers at {self.url} ({why}): is the driver running there?", ExitCode.UNREACHABLE)

    def _refused(self, status: int, content: bytes) -> CommandError:
        sentence = _first_error(content) or f"it answers with status {status}"
        match status:
            case 401:
                advice = "give its token with --token or in REKINDLE_TOKEN"
                return CommandError(f"The driver at {self.url} wants a token: {advice}.", ExitCode.UNREACHABLE)
            case 403:
                return CommandError(f"The driver at {self.url} refuses: {sentence}", ExitCode.UNREACHABLE)
            case 404:
                return CommandError(sentence, ExitCode.NOT_FOUND)
            case 400:
                return CommandError(sentence, ExitCode.USAGE)
        return CommandError(sentence, ExitCode.FAILED)


def _first_error(content: bytes) -> str | None:
    """The first line of an answer's error, in Flink's form."""
    try:
        errors = json.loads(content)["errors"]
        return str(errors[0]).strip().splitlines()[0]
    except (ValueError, KeyError, IndexError, TypeError):
        return None
