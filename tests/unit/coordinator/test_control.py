"""The driver's end of the control connections: it reports how each slot ended."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from queue import Queue

import pytest

from rekindle import wire
from rekindle.clock import SystemClock
from rekindle.coordinator import control
from rekindle.coordinator.control import ControlIdentity, ControlServer
from rekindle.errors import ClusterError
from rekindle.protocol import Heartbeat, Lifeline, Message, SlotEnded, SlotHello, encode

SECRET = b"s" * 32
LONG_S = 60.0


class Listening:
    """A server for one slot, and its messages."""

    def __init__(self) -> None:
        self.said: Queue[object] = Queue()
        self.gone: Queue[tuple[int, str]] = Queue()
        self.server = ControlServer(
            "127.0.0.1",
            ControlIdentity("job", 1, 1, SECRET),
            lambda slot, message: self.said.put(message),
            lambda slot, why: self.gone.put((slot, why)),
            Heartbeat(10_000, 50_000),
            SystemClock(),
        )

    def connect(self, first: Message) -> wire.Connection:
        connection = wire.connect_tcp("127.0.0.1", self.server.port, SECRET)
        connection.send(encode(first))
        return connection

    def connect_slot(self) -> wire.Connection:
        connection = self.connect(SlotHello("job", 1, 0, 123, "here", "boot", "/nowhere", 0))
        self.said.get(timeout=LONG_S)
        return connection


@pytest.fixture
def listening() -> Iterator[Listening]:
    one = Listening()
    yield one
    one.server.close()


def test_a_guardian_says_how_its_slot_ended_also_after_the_slots_own_connection(listening: Listening) -> None:
    slot, guardian = listening.connect_slot(), listening.connect(Lifeline("job", 1, 0))
    slot.close()
    guardian.send(encode(SlotEnded("it exited with code 3")))
    assert listening.gone.get(timeout=LONG_S) == (0, "it exited with code 3")
    guardian.close()


def test_a_guardian_that_has_gone_without_a_message_is_not_waited_for(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_GUARDIAN_S", 10 * LONG_S)
    slot, guardian = listening.connect_slot(), listening.connect(Lifeline("job", 1, 0))
    guardian.close()
    slot.close()
    assert listening.gone.get(timeout=LONG_S) == (
        0,
        "its connections closed, and its machine or container may be gone",
    )


def test_a_guardian_that_sends_nothing_is_waited_for_a_moment(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_GUARDIAN_S", 0.1)
    guardian = listening.connect(Lifeline("job", 1, 0))
    listening.connect_slot().close()
    assert listening.gone.get(timeout=LONG_S) == (0, "its control connection closed")
    guardian.close()


def test_a_driver_without_a_file_descriptor_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket, "create_server", none_left)
    with pytest.raises(ClusterError, match=r"cannot listen for its slots at 127\.0\.0\.1: this process has no file"):
        Listening()
