"""The REST server of a process: its jobs, its address and its token."""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING

from rekindle.web.access_rules import AccessRules
from rekindle.web.asked import Asked, ServerOptions
from rekindle.web.listener import Listener, bind, bind_chosen
from rekindle.web.operations import StartedOperations
from rekindle.web.rest_settings import MetricsPort, RestSettings
from rekindle.web.served_jobs import ServedJobs

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain"})
_ANY_PORT = (0,)
_EVERYWHERE = ("0.0.0.0", "::", "")


class RestServer:
    """Serves jobs from the moment it is made. One server shows all jobs of a process that have the same settings."""

    def __init__(self, settings: RestSettings, jobs: ServedJobs | None = None) -> None:
        self.settings = settings
        self.jobs = jobs or ServedJobs()
        self.operations = StartedOperations(settings.kept_s)
        self.token = secrets.token_urlsafe(24) if settings.token == "auto" else settings.token
        self._listener = Listener(_bound(settings), self._app, "rekindle-rest")
        self._metrics: list[Listener] = []

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return self._listener.port

    @property
    def url(self) -> str:
        """The address at which clients reach it."""
        return f"http://{self._host()}:{self.port}/"

    @property
    def link(self) -> str:
        """The address for people: with the token, if it may be shown; the browser then keeps it as a cookie."""
        has_token = self.token is not None and self.settings.token_is_shown
        return f"{self.url}?token={self.token}" if has_token else self.url

    @property
    def is_awake(self) -> bool:
        """Whether a client has come."""
        return self._listener.is_awake

    @property
    def threads(self) -> list[int]:
        """The ids of its threads, for measurements."""
        return [each.thread.ident for each in (self._listener, *self._metrics) if each.thread.ident is not None]

    def serve_metrics(self, reporter: MetricsPort) -> int:
        """Serve metrics on a port of their own, too. Returns the port."""
        key = f"metrics.reporter.{reporter.name}.port"
        what = f"The reporter of metrics '{reporter.name}'"
        listening = bind_chosen(self.settings.bind_address, reporter.ports, what, key)
        port: int = listening.getsockname()[1]

        def app() -> ASGIApp:
            from rekindle.web.application import metrics_app

            return metrics_app(self.jobs, reporter.options, self._rules(port))

        self._metrics.append(Listener(listening, app, f"rekindle-metrics-{reporter.name}"))
        return port

    def close(self) -> None:
        """Stop to serve."""
        for each in (self._listener, *self._metrics):
            each.stop()

    def _host(self) -> str:
        if self.settings.address is not None:
            return self.settings.address
        bound = self.settings.bind_address
        host = socket.gethostname() if bound in _EVERYWHERE else bound
        return f"[{host}]" if ":" in host else host

    def _rules(self, port: int) -> AccessRules:
        own = {self.settings.bind_address, self.settings.address or "", socket.gethostname()}
        return AccessRules(_LOCAL_NAMES | {name.lower() for name in own if name}, port, self.token)

    def _app(self) -> ASGIApp:
        from rekindle.web.application import rest_app
        from rekindle.web.event_stream import EventStreams

        streams = EventStreams(self.jobs)
        self._listener.before_stop = streams.closing.set
        options = ServerOptions(self.url.rstrip("/"), self.settings.refresh_ms, self.settings.may_cancel)
        asked = Asked(self.jobs, self.operations, options)
        return rest_app(asked, self._rules(self.port), streams)


def _bound(settings: RestSettings) -> socket.socket:
    if settings.ports_are_chosen:
        return bind_chosen(settings.bind_address, settings.ports, "The REST API", "rest.bind-port")
    try:
        return bind(settings.bind_address, settings.ports)
    except OSError:
        return bind_chosen(settings.bind_address, _ANY_PORT, "The REST API", "rest.bind-address")
