"""Accepts connections: each must prove within one deadline that it knows the job's secret before it is served.

Strangers cannot block the server: a bounded number of connections waits for its proof, and beyond it the oldest is
closed. Nor can they stop it: when `accept` fails, it is called again after a pause.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import threading
from collections.abc import Callable

from rekindle import wire
from rekindle.errors import ClusterError
from rekindle.system import refusal

_LOG = logging.getLogger(__name__)
#: The most connections that wait for their proof: beyond it the one that has waited longest is closed.
_MOST_WAITING = 128
#: Connections that cannot be accepted (no descriptor left) wait in the kernel: without a pause accept() would spin.
_PAUSE_S = 0.1
_CLOSED = (errno.EBADF, errno.EINVAL, errno.ENOTSOCK)


class Reception:
    """Accepts on a listening socket, on a thread of its own; `admit(connection)` runs on a thread per connection."""

    def __init__(
        self,
        listener: socket.socket,
        secret: bytes,
        admit: Callable[[wire.Connection], None],
        name: str,
        tls: wire.TlsFiles | None = None,
    ) -> None:
        self._listener = listener
        self._secret = secret
        self._tls = tls
        self._admit = admit
        self._name = name
        self._lock = threading.Lock()
        self._waiting: dict[socket.socket, None] = {}  # in the order in which they came
        self._closed = threading.Event()
        #: Why the last connection could not be accepted.
        self.trouble: str | None = None
        self._thread = threading.Thread(target=self._run, name=f"{name} server", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of connections that have not proved yet that they know the secret."""
        return len(self._waiting)

    def close(self) -> None:
        """Accept no more connections, and close those that wait for their proof."""
        self._closed.set()
        # Closing alone does not wake a thread in accept(); a shutdown does.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for sock in self._waiting:
                _hang_up(sock)

    def join(self, timeout_s: float) -> None:
        """Wait until the accepting thread has ended."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                sock, _ = self._listener.accept()
                self._receive(sock)
            except OSError as error:
                if error.errno in _CLOSED:
                    return
                self._pause(refusal(error))
            except RuntimeError as error:  # no thread can be started
                self._pause(str(error))

    def _pause(self, trouble: str) -> None:
        if trouble != self.trouble:
            _LOG.warning("Connections cannot be accepted: %s.", trouble)
        self.trouble = trouble
        self._closed.wait(_PAUSE_S)

    def _receive(self, sock: socket.socket) -> None:
        with self._lock:
            self._waiting[sock] = None
            if len(self._waiting) > _MOST_WAITING:
                oldest = next(iter(self._waiting))
                del self._waiting[oldest]
                _hang_up(oldest)
        try:
            threading.Thread(target=self._authenticate, args=(sock,), name=self._name, daemon=True).start()
        except RuntimeError:
            self._forget(sock)
            sock.close()
            raise

    def _authenticate(self, sock: socket.socket) -> None:
        try:
            connection = wire.accept(sock, self._secret, self._tls)
        except (OSError, ClusterError) as error:
            _LOG.debug("refused a connection: %s", error)
            return
        finally:
            self._forget(sock)
        self._admit(connection)

    def _forget(self, sock: socket.socket) -> None:
        with self._lock:
            self._waiting.pop(sock, None)


def _hang_up(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
