"""TLS for connections between hosts: both sides show a certificate of one authority, before the secret is proved.

It is done on buffers in memory under a lock of our own: Python's TLS sockets must not be read and written by two
threads at once, and a connection's two ends are on different threads here.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable
from functools import lru_cache

from rekindle import config
from rekindle.errors import ClusterError, ConfigurationError
from rekindle.system import refusal
from rekindle.wire import TlsFiles

_READ_BYTES = 1 << 18


_OPTIONS = (config.TLS_CERTIFICATE, config.TLS_KEY, config.TLS_AUTHORITY)


def tls_files(read: Callable[[config.ConfigOption[str | None]], str | None]) -> TlsFiles | None:
    """The files of the settings; None when none is set. Half of them, or files of no use, are refused."""
    certificate, key, authority = map(read, _OPTIONS)
    if certificate is None and key is None and authority is None:
        return None
    if certificate is None or key is None or authority is None:
        missing = [option.key for option in _OPTIONS if read(option) is None]
        raise ConfigurationError(
            f"Connections cannot be encrypted without {' and '.join(missing)}: set all of "
            f"{', '.join(option.key for option in _OPTIONS)}, or none."
        )
    files = TlsFiles(*map(os.path.abspath, (certificate, key, authority)))
    try:
        _context(files, is_server=True)
    except ClusterError as error:
        raise ConfigurationError(str(error)) from None
    return files


@lru_cache(maxsize=8)
def _context(files: TlsFiles, is_server: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # Slots come and go on hosts that nobody knows beforehand: what counts is who has signed, and then the job's secret.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    if is_server:
        context.num_tickets = 0  # nothing comes after the handshake unless somebody speaks
    try:
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
        context.load_verify_locations(files.authority)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"The TLS files {files.certificate}, {files.key} and {files.authority} on {socket.gethostname()} cannot be "
            f"used: {refusal(error)}."
        ) from None
    return context


def _no_password() -> str:
    raise ValueError("the key is protected with a password, which nobody is there to type")


class TlsChannel:
    """Bytes in and out of a socket, encrypted. One thread reads, one at a time writes."""

    def __init__(self, sock: socket.socket, files: TlsFiles, is_server: bool) -> None:
        self._socket = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = _context(files, is_server).wrap_bio(self._incoming, self._outgoing, server_side=is_server)
        self._lock = threading.Lock()

    def agree_step(self) -> bool:
        """A step of the handshake; whether it is over. To be called until it is, with a deadline on the socket."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            self._fill()
            return False
        except ssl.SSLError:
            self._flush()  # the other side hears why
            raise
        self._flush()
        return True

    def read(self, most: int) -> bytes:
        """At least a byte; nothing at the end."""
        while True:
            with self._lock:
                try:
                    return self._tls.read(most)
                except ssl.SSLWantReadError:
                    pass
                except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                    return b""
            self._fill()

    def write(self, data: bytes | memoryview) -> None:
        """All of it."""
        with self._lock:
            self._tls.write(data)
            encrypted = self._outgoing.read()
        self._socket.sendall(encrypted)

    def _fill(self) -> None:
        received = self._socket.recv(_READ_BYTES)
        with self._lock:
            if received:
                self._incoming.write(received)
            else:
                self._incoming.write_eof()

    def _flush(self) -> None:
        if encrypted := self._outgoing.read():
            self._socket.sendall(encrypted)
