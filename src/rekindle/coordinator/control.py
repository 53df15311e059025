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
from rekindle.errors import ClusterError, ProtocolError
from rekindle.protocol import (
    DriverHeartbeat,
    Lifeline,
    Message,
    SlotEnded,
    SlotHeartbeat,
    SlotHello,
    SlotMessage,
    decode_from_slot,
    encode,
)
from rekindle.reception import Reception
from rekindle.system import refusal

_LOG = logging.getLogger(__name__)
#: How long a guardian has to say how its slot ended: it needs a moment, and a machine that has gone says nothing.
_LAST_WORD_S = 5.0


@dataclass(frozen=True)
class ControlIdentity:
    """Whose slots may connect; anything of an older attempt is refused (fencing)."""

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
        heartbeat_ms: tuple[int, int],  # (interval, timeout)
    ) -> None:
        self._identity = identity
        self._on_message = on_message
        self._on_gone = on_gone
        self._interval_s, self._timeout_s = heartbeat_ms[0] / 1000, heartbeat_ms[1] / 1000
        self._connections: dict[int, wire.Connection] = {}
        self._lifelines: dict[int, wire.Connection] = {}
        self._last_words: dict[int, str] = {}
        self._guardians_changed = threading.Condition()
        self._last_seen: dict[int, float] = {}
        self._closed = threading.Event()
        listener = _listen(host)
        self.port: int = listener.getsockname()[1]
        self._reception = Reception(listener, identity.secret, self._serve, "control", identity.tls)
        threading.Thread(target=self._beat, name="control heartbeat", daemon=True).start()

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
        self._reception.close()
        for connection in [*self._lifelines.values(), *self._connections.values()]:
            connection.close()

    @property
    def trouble(self) -> str | None:
        """Why connections could not be taken, if that happened."""
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
            self._last_seen[first.slot] = monotonic()
            self._connections[first.slot] = connection
        if self._closed.is_set():
            connection.close()  # it came while the others were cut
        elif isinstance(first, Lifeline):
            self._hear_guardian(first.slot, connection)
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
        self._on_message(slot, hello)
        why = None
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
            self._on_gone(slot, why or self._last_word(slot))

    def _hear_guardian(self, slot: int, lifeline: wire.Connection) -> None:
        """Its one word, before the connection ends."""
        how: str | None = None
        with contextlib.suppress(OSError, ProtocolError, ValueError):
            if isinstance(word := decode_from_slot(lifeline.receive()), SlotEnded):
                how = word.how
        with self._guardians_changed:
            self._last_words[slot] = how or "its connections closed, and its machine or container may be gone"
            self._guardians_changed.notify_all()

    def _last_word(self, slot: int) -> str:
        """How the slot ended, from its guardian: the slot's own connection may close before that comes."""
        with self._guardians_changed:
            self._guardians_changed.wait_for(lambda: slot in self._last_words, _LAST_WORD_S)
            return self._last_words.get(slot, "its control connection closed")

    def _beat(self) -> None:
        while not self._closed.wait(self._interval_s):
            self.broadcast(DriverHeartbeat())
            now = monotonic()
            for slot, connection in list(self._connections.items()):
                if now - self._last_seen[slot] > self._timeout_s:
                    self._on_gone(slot, f"it sent no heartbeat for {self._timeout_s:.0f} s")
                    connection.close()


def _listen(host: str) -> socket.socket:
    try:
        return socket.create_server((host, 0))
    except OSError as error:
        raise ClusterError(f"The driver cannot listen for its slots at {host}: {refusal(error)}.") from None
