"""The driver's end of the control connections: accepts slots and guardians, passes their messages on, sends to them."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

from rekindle import wire
from rekindle.clock import WaitingClock
from rekindle.errors import ClusterError, ProtocolError
from rekindle.protocol import (
    DriverHeartbeat,
    Heartbeat,
    Lifeline,
    Message,
    SlotEnded,
    SlotHello,
    SlotMessage,
    decode_from_slot,
    encode,
)
from rekindle.reception import Reception
from rekindle.system import refusal

_LOG = logging.getLogger(__name__)
#: How long to wait for a guardian's message how its slot ended; a machine that has gone sends none.
_GUARDIAN_S = 5.0


@dataclass(frozen=True)
class ControlIdentity:
    """The job and attempt whose slots may connect; slots of an older attempt are refused (fencing)."""

    job_id: str
    attempt: int
    slots: int
    secret: bytes
    tls: wire.TlsFiles | None = None


class ControlServer:
    """Accepts slots and their guardians. `on_message(slot, message)` and `on_gone(slot, why)` run on reader threads."""

    def __init__(
        self,
        host: str,
        identity: ControlIdentity,
        on_message: Callable[[int, SlotMessage], None],
        on_gone: Callable[[int, str], None],
        heartbeat: Heartbeat,
        clock: WaitingClock,
    ) -> None:
        self._identity, self._clock = identity, clock
        self._on_message = on_message
        self._on_gone = on_gone
        self._interval_s, self._timeout_s = heartbeat.interval_s, heartbeat.timeout_s
        self._connections: dict[int, wire.Connection] = {}
        self._lifelines: dict[int, wire.Connection] = {}
        self._slots_ended: dict[int, str] = {}  # how, from the guardians
        self._guardians_changed = threading.Condition()
        self._last_seen: dict[int, float] = {}
        self._closed = threading.Event()
        self.host = host
        with contextlib.ExitStack() as undo:
            listener = undo.enter_context(listen(host))
            self.port: int = listener.getsockname()[1]
            self._reception = Reception(listener, identity.secret, self._serve, "control", identity.tls)
            undo.callback(self._reception.close)
            threading.Thread(target=self._beat, name="control heartbeat", daemon=True).start()
            undo.pop_all()

    def send(self, slot: int, message: Message) -> None:
        """Send to one slot; the slot's reader reports if it has gone."""
        connection = self._connections.get(slot)
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.send(encode(message))

    def broadcast(self, message: Message) -> None:
        """Send to every slot."""
        for slot in list(self._connections):
            self.send(slot, message)

    def connected(self) -> set[int]:
        """The slots that may still send messages: their reader has not come to the end of the connection."""
        return set(self._connections)

    def alive(self) -> set[int]:
        """The slots whose control connection is open at this moment, by the kernel: readers may be late."""
        return {slot for slot, connection in list(self._connections.items()) if connection.is_open()}

    def close(self) -> None:
        """Close every connection: guardians then end the slots that are left."""
        self._closed.set()
        self._reception.close()
        for connection in [*self._lifelines.values(), *self._connections.values()]:
            connection.close()

    @property
    def trouble(self) -> str | None:
        """Why connections could not be accepted, if that happened."""
        return self._reception.trouble

    # -- threads ------------------------------------------------------------------------------------------------------

    def _serve(self, connection: wire.Connection) -> None:
        try:
            first = decode_from_slot(connection.receive())
            self._check(first)
        except (OSError, ProtocolError, ValueError) as error:
            _LOG.warning("refused a connection: %s", error)
            connection.close()
            return
        if isinstance(first, Lifeline):
            self._lifelines[first.slot] = connection
        elif isinstance(first, SlotHello):
            self._last_seen[first.slot] = self._clock.monotonic()
            self._connections[first.slot] = connection
        if self._closed.is_set():
            connection.close()  # it came while the others were closed
        elif isinstance(first, Lifeline):
            self._follow_guardian(first.slot, connection)
        elif isinstance(first, SlotHello):
            self._follow_slot(first, connection)

    def _check(self, first: SlotMessage) -> None:
        if not isinstance(first, SlotHello | Lifeline):
            raise ProtocolError(f"The first message was {type(first).__name__}, not a hello.")
        expected = self._identity
        known = 0 <= first.slot < expected.slots
        if (first.job_id, first.attempt) != (expected.job_id, expected.attempt) or not known:
            raise ProtocolError(
                f"Slot {first.slot} of attempt {first.attempt} does not belong to attempt {expected.attempt}."
            )

    def _follow_slot(self, hello: SlotHello, connection: wire.Connection) -> None:
        slot = hello.slot
        self._on_message(slot, hello)
        why = None
        try:
            while True:
                message = decode_from_slot(connection.receive())
                self._last_seen[slot] = self._clock.monotonic()
                self._on_message(slot, message)
        except Exception as error:  # a reader that ended silently would leave the job waiting for ever
            if not isinstance(error, wire.ConnectionClosedError):
                why = f"its control connection failed ({error})"
        self._connections.pop(slot, None)
        if not self._closed.is_set():
            self._on_gone(slot, why or self._how_it_ended(slot))

    def _follow_guardian(self, slot: int, lifeline: wire.Connection) -> None:
        """Receive the guardian's one message before its connection ends."""
        how: str | None = None
        with contextlib.suppress(OSError, ProtocolError, ValueError):
            if isinstance(message := decode_from_slot(lifeline.receive()), SlotEnded):
                how = message.how
        with self._guardians_changed:
            self._slots_ended[slot] = how or "its connections closed, and its machine or container may be gone"
            self._guardians_changed.notify_all()

    def _how_it_ended(self, slot: int) -> str:
        """Wait for the guardian's message how the slot ended, which may come after the slot's connection closed."""
        with self._guardians_changed:
            self._clock.wait_for(self._guardians_changed, lambda: slot in self._slots_ended, _GUARDIAN_S)
            return self._slots_ended.get(slot, "its control connection closed")

    def _beat(self) -> None:
        while not self._clock.wait(self._closed, self._interval_s):
            self.broadcast(DriverHeartbeat())
            now = self._clock.monotonic()
            for slot, connection in list(self._connections.items()):
                if now - self._last_seen[slot] > self._timeout_s:
                    self._on_gone(slot, f"it sent no heartbeat for {self._timeout_s:.0f} s")
                    connection.close()


def listen(host: str) -> socket.socket:
    """Listen on any port of the driver's host."""
    try:
        return socket.create_server((host, 0))
    except OSError as error:
        raise ClusterError(f"The driver cannot listen for its slots at {host}: {refusal(error)}.") from None
