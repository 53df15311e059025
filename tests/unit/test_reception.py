"""Unknown connections to the reception: they neither block it, nor use up its places, nor stop it."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from rekindle import reception, wire
from rekindle.errors import ProtocolError
from rekindle.reception import Reception

SECRET = b"s" * 32
LONG_S = 60.0


class Door:
    """A reception on loopback, and the connections that it has accepted."""

    def __init__(self, listener: Any = None) -> None:
        self.listener = listener or socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self.listener.getsockname()
        self.admitted: list[wire.Connection] = []
        self._changed = threading.Condition()
        self.reception = Reception(self.listener, SECRET, self._admit, "door")

    def _admit(self, connection: wire.Connection) -> None:
        with self._changed:
            self.admitted.append(connection)
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.admitted) >= count, LONG_S), self.reception.trouble

    def close(self) -> None:
        self.reception.close()
        for connection in self.admitted:
            connection.close()


@pytest.fixture
def opened() -> Iterator[Callable[..., Door]]:
    doors: list[Door] = []

    def open_door(listener: Any = None) -> Door:
        doors.append(Door(listener))
        return doors[-1]

    yield open_door
    for door in doors:
        door.close()


def test_who_knows_the_secret_comes_in(opened: Callable[..., Door]) -> None:
    door = opened()
    wire.connect_tcp(*door.address, SECRET).close()
    door.wait_for(1)


def test_a_stranger_who_sends_a_byte_now_and_then_has_one_deadline_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_HANDSHAKE_TIMEOUT_S", 0.5)
    left, right = socket.socketpair()
    sent, over = [], threading.Event()

    def trickle() -> None:
        with suppress(OSError):
            for byte in wire._LENGTH.pack(32) + bytes(32):
                right.send(bytes([byte]))
                sent.append(byte)
                if over.wait(0.25):
                    return

    stranger = threading.Thread(target=trickle)
    stranger.start()
    with pytest.raises((TimeoutError, ProtocolError)):
        wire.accept(left, SECRET)
    over.set()
    stranger.join()
    right.close()
    assert len(sent) < 36, "it was waited for to the last byte"


def test_a_bounded_number_of_strangers_waits_and_friends_come_in_beside_them(
    opened: Callable[..., Door], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reception, "_MOST_WAITING", 4)
    monkeypatch.setattr(wire, "_HANDSHAKE_TIMEOUT_S", 10 * LONG_S)
    door = opened()
    strangers = [socket.create_connection(door.address, LONG_S / 2) for _ in range(12)]
    friend = wire.connect_tcp(*door.address, SECRET)
    door.wait_for(1)
    for stranger in strangers[:8]:
        # It gets the server's nonce, then the end: newer ones have taken its place.
        while stranger.recv(100):
            pass
    assert door.reception.waiting <= 4
    for stranger in strangers:
        stranger.close()
    friend.close()


class Troubled:
    """A listener whose `accept` fails now and then, as it does when the process has too many open files."""

    def __init__(self, errors: list[OSError]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._errors = errors
        self.asked: list[float] = []

    def accept(self) -> Any:
        self.asked.append(time.monotonic())
        if self._errors:
            raise self._errors.pop(0)
        return self._listener.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listener, name)


def test_the_door_is_answered_again_after_any_trouble_and_without_haste(opened: Callable[..., Door]) -> None:
    kinds = (errno.EMFILE, errno.ENFILE, errno.ECONNABORTED, errno.ENOBUFS, errno.EPROTO)
    listener = Troubled([OSError(kind, "trouble") for kind in kinds])
    door = opened(listener)
    wire.connect_tcp(*door.address, SECRET).close()
    door.wait_for(1)
    gaps = [later - earlier for earlier, later in zip(listener.asked, listener.asked[1:5], strict=False)]
    assert len(gaps) == 4
    assert min(gaps) > 0.02, "it asks again and again without a pause"


def test_it_is_said_when_no_file_can_be_opened_any_more(opened: Callable[..., Door]) -> None:
    door = opened(Troubled([OSError(errno.EMFILE, "Too many open files")]))
    until = time.monotonic() + LONG_S
    while door.reception.trouble is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert "no file descriptor left" in door.reception.trouble


def test_a_closed_door_is_not_answered_any_more(opened: Callable[..., Door]) -> None:
    door = opened()
    door.close()
    with pytest.raises(OSError):
        wire.connect_tcp(*door.address, SECRET)
    door.reception.join(LONG_S)
