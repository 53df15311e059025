"""The slot's side of the pump: receives a stage's chunks, lets the tasks run, sends the chunks that they emit."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from rekindle import wire
from rekindle.errors import ProtocolError
from rekindle.protocol import DESTINATION, END_OF_STAGE, PumpHello, PumpReply, decode_pump_hello, encode_pump
from rekindle.reception import Reception

_LOG = logging.getLogger(__name__)


class StageHost(Protocol):
    """The interface of the slot, which runs the tasks of a stage."""

    def accept_chunk(self, chunk: bytes) -> None:
        """Accept a received chunk."""

    def run_stage(self, hello: PumpHello) -> Iterator[tuple[int, bytes]]:
        """Run this slot's tasks of the stage; yield the chunks that they send."""

    def releasing(self, hello: PumpHello) -> AbstractContextManager[None]:
        """Enter around the last message to the pump: after it Spark goes on, and the next input may come (I2)."""
        ...


class StageFence:
    """Refuses a stage that was fed before: a Spark task that runs again must not feed its chunks twice (I3).

    >>> fence = StageFence(attempt=1)
    >>> fence.refusal(PumpHello(1, 5, 0, 10, 10)), fence.refusal(PumpHello(1, 5, 0, 10, 10))
    (None, 'epoch 5, stage 0 was fed before; a Spark task was run again')
    """

    def __init__(self, attempt: int) -> None:
        self._attempt = attempt
        self._last = (-1, -1)
        self._lock = threading.Lock()

    def refusal(self, hello: PumpHello) -> str | None:
        """Return why this stage may not be fed; None if it may."""
        with self._lock:
            if hello.attempt != self._attempt:
                return f"attempt {hello.attempt} is not this slot's attempt {self._attempt}"
            if (hello.epoch, hello.stage) <= self._last:
                return f"epoch {hello.epoch}, stage {hello.stage} was fed before; a Spark task was run again"
            self._last = hello.epoch, hello.stage
            return None


class PumpServer:
    """Listens on a unix socket, and on TCP when pumps may run on other hosts."""

    def __init__(
        self,
        directory: str,
        secret: bytes,
        attempt: int,
        host: StageHost,
        loopback_only: bool,
        tls: wire.TlsFiles | None = None,
    ) -> None:
        self._secret = secret
        self._host = host
        self._fence = StageFence(attempt)
        self.unix_path = os.path.join(directory, "pump")
        self.tcp_port = 0
        self._listen(self._unix_socket())
        if not loopback_only:
            listener = socket.create_server(("", 0))
            self.tcp_port = listener.getsockname()[1]
            self._listen(listener, tls)

    def _unix_socket(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self.unix_path)
        listener.listen(16)
        return listener

    def _listen(self, listener: socket.socket, tls: wire.TlsFiles | None = None) -> None:
        Reception(listener, self._secret, self._handle_connection, "pump", tls)

    def _handle_connection(self, connection: wire.Connection) -> None:
        try:
            self._serve(connection)
        except (OSError, ProtocolError, StageAbortedError) as error:
            _LOG.debug("pump connection ended: %s", error)
        finally:
            connection.close()

    def _serve(self, connection: wire.Connection) -> None:
        hello = decode_pump_hello(connection.receive())
        refusal = self._fence.refusal(hello)
        connection.send(encode_pump(PumpReply(refusal)))
        if refusal is not None:
            return
        while chunk := connection.receive():
            self._host.accept_chunk(chunk)
        for destination, chunk in self._host.run_stage(hello):
            connection.send(DESTINATION.pack(destination), chunk)
        with self._host.releasing(hello):
            connection.send(END_OF_STAGE)


class StageAbortedError(Exception):
    """A task failed or was cancelled; the driver knows, and the pump's connection is closed."""
