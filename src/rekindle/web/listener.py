"""A socket and its thread. The packages that serve are imported when the first client comes: until then a job pays
for a socket and a sleeping thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from rekindle.errors import ConfigurationError
from rekindle.system import readable, refusal

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

_LOG = logging.getLogger("rekindle.web")
_BACKLOG = 64
#: The most connections at a time; others are refused with 503.
_MOST_CONNECTIONS = 128
#: A connection that says nothing, or does not take its answer, is closed after this time.
_IDLE_S = 15
_STOP_S = 5
#: uvicorn counts ticks, and does something in every tenth.
_TICK_S, _TICKS_PER_S = 0.1, 10


def bind(address: str, ports: Iterable[int]) -> socket.socket:
    """Listen on the first free port. Raises OSError, that of the last port, if none is."""
    failure = OSError("no port is given")
    for port in ports:
        try:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            return socket.create_server((address, port), family=family, backlog=_BACKLOG)
        except OSError as error:
            failure = error
    raise failure


def bind_chosen(address: str, ports: tuple[int, ...], what: str, key: str) -> socket.socket:
    """Listen on a port that the user chose; ConfigurationError if none of them is free."""
    try:
        return bind(address, ports)
    except OSError as error:
        shown = ",".join(map(str, ports[:10])) + (",…" if len(ports) > 10 else "")
        raise ConfigurationError(
            f"{what} cannot listen on {address}, port {shown} ({refusal(error)}): name other ports with {key}."
        ) from None


class Listener:
    """Serves an application on a socket, on a thread of its own, from the first client on."""

    def __init__(self, listening: socket.socket, make_app: Callable[[], ASGIApp], name: str) -> None:
        self.port: int = listening.getsockname()[1]
        self._socket = listening
        self._make_app = make_app
        self._stop_read, self._stop_write = socket.socketpair()
        self._server: uvicorn.Server | None = None
        #: Called on the server's loop before it stops.
        self.before_stop: Callable[[], None] = lambda: None
        self._wake_to_stop: Callable[[], None] = lambda: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    @property
    def is_awake(self) -> bool:
        """Whether a client has come."""
        return self._server is not None

    def stop(self) -> None:
        """Stop to serve, and wait for the thread."""
        self._stop_write.close()
        server, loop = self._server, self._loop
        if server is not None and loop is not None:
            server.should_exit = server.force_exit = True
            with contextlib.suppress(RuntimeError):  # it has stopped already
                loop.call_soon_threadsafe(self.before_stop)
                loop.call_soon_threadsafe(self._wake_to_stop)
        self.thread.join(_STOP_S)

    def _run(self) -> None:
        try:
            if self._stop_read not in readable([self._socket, self._stop_read]):
                self._serve()
        except Exception:  # a page that cannot be served must not end the job
            _LOG.exception("The server on port %d has ended.", self.port)
        finally:
            self._socket.close()
            self._stop_read.close()

    def _serve(self) -> None:
        import uvicorn

        options = uvicorn.Config(
            self._make_app(),
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(options)
        asyncio.run(self._until_stopped(self._server))

    async def _until_stopped(self, server: uvicorn.Server) -> None:
        self._loop = asyncio.get_running_loop()
        stopping = asyncio.Event()
        self._wake_to_stop = stopping.set
        # uvicorn's own loop looks ten times a second whether it has to stop.
        server.main_loop = partial(_main_loop, server, stopping)  # type: ignore[method-assign]
        sweeping = self._loop.create_task(close_stuck(server, _IDLE_S))
        try:
            await server.serve(sockets=[self._socket])
        finally:
            sweeping.cancel()


async def _main_loop(server: uvicorn.Server, stopping: asyncio.Event) -> None:
    """uvicorn's own loop, with a longer pause; a tick updates the time in the answers' headers."""
    ticks = 0
    while not await server.on_tick(ticks):
        ticks += _TICKS_PER_S
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), _TICKS_PER_S * _TICK_S)


async def close_stuck(server: uvicorn.Server, idle_s: float) -> None:
    """Close connections whose clients neither send nor take anything for a time: else they use up the limit.

    uvicorn closes a connection by itself only if it is silent after an answer.
    """
    since: dict[tuple[Any, int], float] = {}
    while True:
        now = asyncio.get_running_loop().time()
        waiting = [(each, _unsent(each)) for each in server.server_state.connections if _waits_for_client(each)]
        since = {each: since.get(each, now) for each in waiting}
        for (each, unsent), began in since.items():
            if now - began > idle_s and each.transport is not None:
                end = each.transport.abort if unsent else each.transport.close
                end()
        await asyncio.sleep(idle_s / 3)


def _waits_for_client(connection: Any) -> bool:
    """Whether a connection waits for its first request, or for its client to take what was sent."""
    return connection.cycle is None or connection.flow.write_paused


def _unsent(connection: Any) -> int:
    """The bytes that a client has not taken: while there are fewer and fewer, it is slow but not stuck."""
    return 0 if connection.transport is None else int(connection.transport.get_write_buffer_size())
