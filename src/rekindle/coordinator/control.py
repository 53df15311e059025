"""The driver's end of the control connections: who is there, what they say, and when they go."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from rekindle import wire
from rekindle.errors import ProtocolError
from rekindle.protocol import (
    DriverHeartbeat,
    Lifeline,
    Message,
    SlotHeartbeat,
    SlotHello,
    SlotMessage,
    decode_from_slot,
    encode,
)

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ControlIdentity:
    """Whose slots may connect; anything of an older attempt is refused (fencing)."""

    job_id: str
    attempt: int
    slots: int
    secret: bytes


class ControlServer:
    """Accepts slots and their guardians. `on_message(slot, message)` and `on_gone(slot, why)` run on reader threads."""

    def __init__(
        self,
        host: str,
        identity: ControlIdentity,
        on_message: Callable[[int, SlotMessage], None],
        on_gone: Callable[[int, str], None],
        heartbeat_ms: tuple[int, int],  # (interval, timeout)
    ) -> None:
        self._identity = identity
        self._on_message = on_message
        self._on_gone = on_gone
        self._interval_s, self._timeout_s = heartbeat_ms[0] / 1000, heartbeat_ms[1] / 1000
        self._listener = socket.create_server((host, 0))
        self.port: int = self._listener.getsockname()[1]
        self._connections: dict[int, wire.Connection] = {}
        self._lifelines: list[wire.Connection] = []
        self._last_seen: dict[int, float] = {}
        self._closed = threading.Event()
        for target, name in ((self._accept, "control server"), (self._beat, "control heartbeat")):
            threading.Thread(target=target, name=name, daemon=True).start()

    def send(self, slot: int, message: Message) -> None:
        """Tell one slot; one that has gone is reported by its reader."""
        connection = self._connections.get(slot)
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.send(encode(message))

    def broadcast(self, message: Message) -> None:
        """Tell every slot."""
        for slot in list(self._connections):
            self.send(slot, message)

    def connected(self) -> set[int]:
        """The slots that may still have something to say: their reader has not come to the end of the connection."""
        return set(self._connections)

    def alive(self) -> set[int]:
        """The slots whose control connection is alive at this moment, asked of the kernel: readers may be late."""
        return {slot for slot, connection in list(self._connections.items()) if connection.is_open()}

    def close(self) -> None:
        """Cut every connection: guardians end the slots that are left."""
        self._closed.set()
        # Closing alone does not wake a thread in accept(); a shutdown does.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in [*self._lifelines, *self._connections.values()]:
            connection.close()

    # -- threads ------------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), name="control", daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            connection = wire.accept(sock, self._identity.secret)
            first = decode_from_slot(connection.receive())
            self._check(first)
        except (OSError, ProtocolError, ValueError) as error:
            _LOG.warning("refused a connection: %s", error)
            sock.close()
            return
        if isinstance(first, Lifeline):
            self._lifelines.append(connection)
        elif isinstance(first, SlotHello):
            self._follow(first, connection)

    def _check(self, first: SlotMessage) -> None:
        if not isinstance(first, SlotHello | Lifeline):
            raise ProtocolError(f"The first message was {type(first).__name__}, not a hello.")
        expected = self._identity
        known = 0 <= first.slot < expected.slots
        if (first.job_id, first.attempt) != (expected.job_id, expected.attempt) or not known:
            raise ProtocolError(
                f"Slot {first.slot} of attempt {first.attempt} does not belong to attempt {expected.attempt}."
            )

    def _follow(self, hello: SlotHello, connection: wire.Connection) -> None:
        slot = hello.slot
        self._connections[slot] = connection
        self._last_seen[slot] = monotonic()
        self._on_message(slot, hello)
        why = "its control connection closed"
        try:
            while True:
                message = decode_from_slot(connection.receive())
                self._last_seen[slot] = monotonic()
                if not isinstance(message, SlotHeartbeat):
                    self._on_message(slot, message)
        except Exception as error:  # a reader that ended without a word would leave the job waiting for ever
            if not isinstance(error, wire.ConnectionClosedError):
                why = f"its control connection failed ({error})"
        self._connections.pop(slot, None)
        if not self._closed.is_set():
            self._on_gone(slot, why)

    def _beat(self) -> None:
        while not self._closed.wait(self._interval_s):
            self.broadcast(DriverHeartbeat())
            now = monotonic()
            for slot, connection in list(self._connections.items()):
                if now - self._last_seen[slot] > self._timeout_s:
                    self._on_gone(slot, f"it sent no heartbeat for {self._timeout_s:.0f} s")
                    connection.close()
