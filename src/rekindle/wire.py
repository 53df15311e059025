"""Framed, authenticated connections between driver, slots and pumps; encrypted if certificates are configured.

A frame is a little-endian u32 length and that many bytes. Before the first frame both sides prove that they know the
job's secret (HMAC-SHA256 over the other side's nonce), so that no stranger's bytes are ever decoded.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import select
import socket
import struct
import threading
from typing import TYPE_CHECKING

import msgspec

from rekindle.clock import SystemClock
from rekindle.errors import ProtocolError

if TYPE_CHECKING:
    from rekindle.tls import TlsChannel

_LENGTH = struct.Struct("<I")
_NONCE_BYTES = 32
#: The longest frame before the proof: a stranger must not make us allocate memory.
_HANDSHAKE_BYTES = 64
#: For the whole handshake: a stranger who sends a byte now and then must not hold a connection for ever.
_HANDSHAKE_TIMEOUT_S = 10.0
_MAX_FRAME_BYTES = 1 << 31
#: The kernel waits on sockets in the machine's time, whatever the clock of the job.
_CLOCK = SystemClock()


class TlsFiles(msgspec.Struct, frozen=True):
    """Paths of PEM files on a host: its certificate, the certificate's key, and the authority that signs all hosts'."""

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
        """This side's address on the connection: other hosts reach this one there."""
        return str(self._socket.getsockname()[0])

    def fileno(self) -> int:
        """The descriptor, for polling."""
        return self._socket.fileno()

    def send(self, *parts: bytes | memoryview) -> None:
        """Send one frame, the parts joined."""
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
        """Read at least one byte and at most `most`; empty at the end of the connection."""
        self._apply_deadline()
        if self._tls is not None:
            return self._tls.read(most)
        return self._socket.recv(most, socket.MSG_WAITALL)  # one copy; only a signal or a timeout cuts it short

    def _write(self, data: bytes | memoryview) -> None:
        self._apply_deadline()
        if self._tls is not None:
            self._tls.write(data)
        else:
            self._socket.sendall(data)

    def _apply_deadline(self) -> None:
        if self._deadline is not None:
            left_s = self._deadline - _CLOCK.monotonic()
            if left_s <= 0:
                raise TimeoutError("the other side took too long to prove itself")
            self._socket.settimeout(left_s)

    def encrypt(self, files: TlsFiles, is_server: bool) -> None:
        """Do the TLS handshake, certificates included; everything after it is encrypted."""
        from rekindle.tls import TlsChannel  # imported late: most workers never encrypt, and start faster without it

        channel = TlsChannel(self._socket, files, is_server)
        self._apply_deadline()
        while not channel.agree_step():
            self._apply_deadline()
        self._tls = channel

    def is_open(self) -> bool:
        """Whether the kernel sees the connection open. A closed one may still hold unread bytes."""
        if self._socket.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self._socket, getattr(select, "POLLRDHUP", select.POLLHUP))
        return not poll.poll(0)

    def set_timeout(self, seconds: float | None) -> None:
        """Set how long one send or receive may block."""
        self._socket.settimeout(seconds)

    def set_deadline(self, seconds: float | None) -> None:
        """Set how long everything sent and received from now on may take in all; None removes the limit."""
        self._deadline = None if seconds is None else _CLOCK.monotonic() + seconds
        self._socket.settimeout(seconds)

    def close(self) -> None:
        """Close the connection, and wake every thread that waits on it."""
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
    """An id that tells machines apart: the kernel makes a new one at each boot."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return socket.gethostname()
