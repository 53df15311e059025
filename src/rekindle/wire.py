"""Framed, authenticated connections between driver, slots and pumps; encrypted if there are certificates.

A frame is a little-endian u32 length and that many bytes. Before the first frame both sides prove that they know the
job's secret (HMAC-SHA256 over the other side's nonce), so that nothing foreign is ever decoded.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import select
import socket
import struct
import threading
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from rekindle.errors import ProtocolError

if TYPE_CHECKING:
    from rekindle.tls import TlsChannel

_LENGTH = struct.Struct("<I")
_NONCE_BYTES = 32
#: Before the proof nothing longer is read: a stranger must not make us allocate.
_HANDSHAKE_BYTES = 64
#: For all of it together: a stranger who sends a byte now and then must not hold it for ever.
_HANDSHAKE_TIMEOUT_S = 10.0
_MAX_FRAME_BYTES = 1 << 31


class TlsFiles(msgspec.Struct, frozen=True):
    """Where a host has its certificate, the key of that, and the authority that has signed everybody's; PEM files."""

    certificate: str
    key: str
    authority: str


class ConnectionClosedError(ConnectionError):
    """The other side has gone."""


class Connection:
    """One stream socket that carries frames. Sending is thread-safe; one thread receives."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._send_lock = threading.Lock()
        self._deadline: float | None = None
        self._tls: TlsChannel | None = None
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def local_address(self) -> str:
        """The address that this side has on the connection: others on the network reach it there."""
        return str(self._socket.getsockname()[0])

    def fileno(self) -> int:
        """The descriptor, for polling."""
        return self._socket.fileno()

    def send(self, *parts: bytes | memoryview) -> None:
        """Send one frame made of the parts, whole."""
        length = sum(map(len, parts))
        assert length < _MAX_FRAME_BYTES, f"frame of {length} bytes"
        with self._send_lock:
            if length < 65536:
                self._write(b"".join((_LENGTH.pack(length), *parts)))
                return
            self._write(_LENGTH.pack(length))
            for part in parts:
                self._write(part)

    def receive(self, at_most: int = _MAX_FRAME_BYTES) -> bytes:
        """The next frame; `ConnectionClosedError` at the end."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        if length > at_most:
            raise ProtocolError(f"A frame of {length} bytes was announced: the other side speaks another protocol.")
        return self._read(length) if length else b""

    def _read(self, size: int) -> bytes:
        data = self._read_some(size)
        while len(data) < size:
            more = self._read_some(size - len(data)) if data else b""
            if not more:
                raise ConnectionClosedError("connection closed")
            data += more
        return data

    def _read_some(self, most: int) -> bytes:
        """At least a byte; nothing at the end."""
        self._mind_the_deadline()
        if self._tls is not None:
            return self._tls.read(most)
        return self._socket.recv(most, socket.MSG_WAITALL)  # one copy; only a signal or a timeout cuts it short

    def _write(self, data: bytes | memoryview) -> None:
        self._mind_the_deadline()
        if self._tls is not None:
            self._tls.write(data)
        else:
            self._socket.sendall(data)

    def _mind_the_deadline(self) -> None:
        if self._deadline is not None:
            left_s = self._deadline - monotonic()
            if left_s <= 0:
                raise TimeoutError("the other side took too long to prove itself")
            self._socket.settimeout(left_s)

    def encrypt(self, files: TlsFiles, is_server: bool) -> None:
        """From here on everything is encrypted, and the other side has shown its certificate."""
        from rekindle.tls import TlsChannel  # most workers never encrypt, and start quicker without it

        channel = TlsChannel(self._socket, files, is_server)
        self._mind_the_deadline()
        while not channel.agree_step():
            self._mind_the_deadline()
        self._tls = channel

    def is_open(self) -> bool:
        """Whether the other side has not hung up, by the kernel's word: what it sent before may still be unread."""
        if self._socket.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self._socket, getattr(select, "POLLRDHUP", select.POLLHUP))
        return not poll.poll(0)

    def set_timeout(self, seconds: float | None) -> None:
        """How long a send or receive may block."""
        self._socket.settimeout(seconds)

    def set_deadline(self, seconds: float | None) -> None:
        """How long all that is sent and received from here on may take together; None: as long as it takes."""
        self._deadline = None if seconds is None else monotonic() + seconds
        self._socket.settimeout(seconds)

    def close(self) -> None:
        """End the connection for every thread that waits on it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _authenticate(connection: Connection, secret: bytes, role: bytes, other: bytes) -> None:
    nonce = os.urandom(_NONCE_BYTES)
    connection.send(nonce)
    theirs = connection.receive(_HANDSHAKE_BYTES)
    if len(theirs) != _NONCE_BYTES:
        raise ProtocolError("The other side does not speak Rekindle's protocol.")
    connection.send(hmac.digest(secret, role + theirs, "sha256"))
    if not hmac.compare_digest(connection.receive(_HANDSHAKE_BYTES), hmac.digest(secret, other + nonce, "sha256")):
        raise ProtocolError("The other side does not know this job's secret; the connection was refused.")


def accept(sock: socket.socket, secret: bytes, tls: TlsFiles | None = None) -> Connection:
    """Authenticate an accepted socket (server side)."""
    return _secured(sock, secret, b"server", b"client", tls)


def connect_tcp(
    host: str, port: int, secret: bytes, tls: TlsFiles | None = None, timeout_s: float = 10.0
) -> Connection:
    """Connect over TCP and authenticate (client side)."""
    return _secured(socket.create_connection((host, port), timeout_s), secret, b"client", b"server", tls)


def connect_unix(path: str, secret: bytes) -> Connection:
    """Connect over a unix socket and authenticate (client side)."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return _secured(sock, secret, b"client", b"server")


def _secured(sock: socket.socket, secret: bytes, role: bytes, other: bytes, tls: TlsFiles | None = None) -> Connection:
    connection = Connection(sock)
    try:
        connection.set_deadline(_HANDSHAKE_TIMEOUT_S)
        if tls is not None:
            connection.encrypt(tls, is_server=role == b"server")
        _authenticate(connection, secret, role, other)
        connection.set_deadline(None)
    except BaseException:
        connection.close()
        raise
    return connection


def this_boot_id() -> str:
    """Tells machines apart: every start of a kernel has an id of its own."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return socket.gethostname()
