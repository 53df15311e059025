"""A slot for tests of the Spark side: a thread that speaks the pump protocol and runs a plain function per stage."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rekindle import protocol, wire
from rekindle.coordinator.cluster import SlotAddress
from rekindle.errors import ProtocolError
from rekindle.wire import this_boot_id

#: The behaviour of a slot in a stage: (the hello, chunks in) -> (destination, chunk) pairs.
Behaviour = Callable[[protocol.PumpHello, list[bytes]], Iterable[tuple[int, bytes]]]


class FakeSlot:
    """Listens on a unix socket and on a loopback port until it is closed."""

    def __init__(self, secret: bytes, behaviour: Behaviour, *, unix: bool = True) -> None:
        self.secret = secret
        self.behaviour = behaviour
        self.hellos: list[protocol.PumpHello] = []
        self._seen: set[tuple[int, int, int]] = set()
        self._directory = tempfile.TemporaryDirectory(prefix="fake-slot-")
        path = Path(self._directory.name) / "pump.sock"
        self._unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._unix.bind(os.fspath(path))
        self._unix.listen(64)
        self._tcp = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._open: set[socket.socket] = set()
        self.families: list[int] = []
        for server in (self._unix, self._tcp):
            threading.Thread(target=self._accept, args=(server,), daemon=True).start()
        boot_id = this_boot_id() if unix else "another-machine"
        self.address = SlotAddress("127.0.0.1", boot_id, os.fspath(path), self._tcp.getsockname()[1])

    def close(self) -> None:
        """Stop listening and close every connection."""
        for sock in (self._unix, self._tcp, *self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        self._directory.cleanup()

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                sock, _ = server.accept()
            except OSError:
                return
            self._open.add(sock)
            self.families.append(sock.family)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, ProtocolError):
            self._stage(wire.accept(sock, self.secret))
        self._open.discard(sock)

    def _stage(self, connection: wire.Connection) -> None:
        with contextlib.closing(connection):
            hello = protocol.decode_pump_hello(connection.receive())
            self.hellos.append(hello)
            key = (hello.attempt, hello.epoch, hello.stage)
            if key in self._seen:
                refusal = f"attempt {key[0]}, epoch {key[1]}, stage {key[2]} was here before."
                connection.send(protocol.encode_pump(protocol.PumpReply(refused=refusal)))
                return
            self._seen.add(key)
            connection.send(protocol.encode_pump(protocol.PumpReply()))
            chunks: list[bytes] = []
            while chunk := connection.receive():
                chunks.append(chunk)
            for destination, chunk in self.behaviour(hello, chunks):
                connection.send(struct.pack("<I", destination), chunk)
            connection.send(protocol.END_OF_STAGE)


@contextlib.contextmanager
def fake_slots(secret: bytes, behaviours: Iterable[Behaviour], *, unix: bool = True) -> Iterator[list[FakeSlot]]:
    """Run a fake slot for each behaviour inside the block."""
    slots = [FakeSlot(secret, behaviour, unix=unix) for behaviour in behaviours]
    try:
        yield slots
    finally:
        for slot in slots:
            slot.close()


def silent(hello: protocol.PumpHello, chunks: list[bytes]) -> Iterable[tuple[int, bytes]]:
    """A stage without input and output."""
    return ()
