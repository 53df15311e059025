"""TLS for connections between hosts: both sides show a certificate of one authority before they prove the secret.

TLS works on buffers in memory under a lock of our own: Python's TLS sockets must not be read and written by two
threads at once, and a connection here is read on one thread and written on others.
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
    """The TLS files that the settings name; None when none is set. Incomplete or unusable settings are refused."""
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
    # The hosts of slots are not known beforehand: the authority's signature counts, and then the job's secret.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    if is_server:
        context.num_tickets = 0  # the server sends nothing of its own after the handshake
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
    raise ValueError("the key is protected with a password, which cannot be asked for here")


class TlsChannel:
    """Reads and writes encrypted bytes on a socket. One thread reads; one thread at a time writes."""

    def __init__(self, sock: socket.socket, files: TlsFiles, is_server: bool) -> None:
        self._socket = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = _context(files, is_server).wrap_bio(self._incoming, self._outgoing, server_side=is_server)
        self._lock = threading.Lock()

    def agree_step(self) -> bool:
        """Do one step of the handshake; returns whether it is over. Call it until then, with a socket timeout."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            self._fill()
            return False
        except ssl.SSLError:
            self._flush()  # the alert tells the other side the reason
            raise
        self._flush()
        return True

    def read(self, most: int) -> bytes:
        """Read at least one byte and at most `most`; empty at the end of the connection."""
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
        """Encrypt and send all of `data`."""
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
