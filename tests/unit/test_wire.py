"""Framing and the mutual proof of the secret."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest

from rekindle import wire
from rekindle.errors import ProtocolError


def pair(server_secret: bytes, client_secret: bytes):
    """Both ends of a handshake over a socket pair, or the errors they raised."""
    left, right = socket.socketpair()
    outcome: dict[str, object] = {}

    def serve() -> None:
        try:
            outcome["server"] = wire.accept(left, server_secret)
        except (ProtocolError, OSError) as error:
            outcome["server"] = error

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        outcome["client"] = wire._secured(right, client_secret, b"client", b"server")
    except (ProtocolError, OSError) as error:
        outcome["client"] = error
    thread.join(5)
    return outcome["server"], outcome["client"]


def test_frames_of_every_size_arrive_whole():
    server, client = pair(b"s" * 32, b"s" * 32)
    frames = [b"", b"x", b"y" * 65_535, b"z" * 3_000_000]
    sender = threading.Thread(target=lambda: [client.send(frame[:7], memoryview(frame)[7:]) for frame in frames])
    sender.start()
    assert [server.receive() for _ in frames] == frames
    sender.join()
    client.close()
    with pytest.raises(wire.ConnectionClosedError):
        server.receive()
    server.close()


def test_a_wrong_secret_is_refused_on_both_sides():
    server, client = pair(b"s" * 32, b"t" * 32)
    assert isinstance(server, ProtocolError | OSError)
    assert isinstance(client, ProtocolError | OSError)
    assert any("secret" in str(side) for side in (server, client))


def test_a_reflected_challenge_is_no_proof():
    """A peer that only echoes what it hears must not pass: roles are part of the proof."""
    left, right = socket.socketpair()

    def echo() -> None:
        with contextlib.suppress(OSError):
            while data := right.recv(4096):
                right.sendall(data)

    echoing = threading.Thread(target=echo, daemon=True)
    echoing.start()
    with pytest.raises(ProtocolError, match="secret"):
        wire.accept(left, b"s" * 32)
    left.close()
    echoing.join(10)
    right.close()


def test_a_stranger_cannot_make_us_allocate():
    left, right = socket.socketpair()
    right.sendall((1 << 30).to_bytes(4, "little"))
    with pytest.raises(ProtocolError, match="another protocol"):
        wire.accept(left, b"s" * 32)
    right.close()
