"""Connections between hosts can be encrypted: both sides show a certificate, and incomplete settings are refused."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from rekindle import wire
from rekindle.common import Configuration
from rekindle.errors import ConfigurationError, ProtocolError
from rekindle.protocol import PumpHello
from rekindle.reception import Reception
from rekindle.runtime.pump_server import PumpServer
from rekindle.spark import pump
from rekindle.spark.pump import PumpTask
from rekindle.tls import tls_files
from rekindle.wire import TlsFiles
from tests.support.certificates import make_files

SECRET = b"s" * 32
LONG_S = 60.0


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return make_files(tmp_path_factory.mktemp("tls") / "ours")


class Wiretap:
    """Passes bytes on between two sockets, and keeps a copy."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.heard = bytearray()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        self._target = address
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        near, _ = self._listener.accept()
        far = socket.create_connection(self._target)
        threads = [threading.Thread(target=self._pass, args=ends, daemon=True) for ends in ((near, far), (far, near))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        near.close()
        far.close()
        self._listener.close()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        while data := source.recv(65536):
            self.heard += data
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


class Echo:
    """Sends every frame back, while another thread sends frames of its own."""

    def __init__(self, tls: TlsFiles | None) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = listener.getsockname()
        self.reception = Reception(listener, SECRET, self._answer, "echo", tls)

    def _answer(self, connection: wire.Connection) -> None:
        try:
            while True:
                connection.send(connection.receive())
        except OSError:
            connection.close()


@pytest.fixture
def echo(files: TlsFiles) -> Iterator[Echo]:
    one = Echo(files)
    yield one
    one.reception.close()


def test_frames_of_every_size_go_both_ways_at_once_and_nobody_can_read_them(echo: Echo, files: TlsFiles) -> None:
    tap = Wiretap(echo.address)
    connection = wire.connect_tcp(*tap.address, SECRET, files)
    frames = [b"", b"plain text of the job", b"plain" * 20_000, b"text" * 1_000_000]
    sender = threading.Thread(target=lambda: [connection.send(frame) for frame in frames * 3])
    sender.start()
    assert [connection.receive() for _ in frames * 3] == frames * 3
    sender.join()
    connection.close()
    assert len(tap.heard) > 6 * sum(map(len, frames))
    assert b"plain" not in tap.heard
    assert b"text" not in tap.heard


def test_without_tls_the_wiretap_hears_it() -> None:
    echo = Echo(None)
    tap = Wiretap(echo.address)
    connection = wire.connect_tcp(*tap.address, SECRET)
    connection.send(b"plain text of the job")
    connection.receive()
    connection.close()
    echo.reception.close()
    assert b"plain text" in tap.heard


@pytest.mark.parametrize("who", ["nobody", "another authority's"])
def test_only_certificates_of_the_authority_are_taken(echo: Echo, tmp_path: Path, who: str) -> None:
    theirs = None if who == "nobody" else make_files(tmp_path / "theirs")
    with pytest.raises((OSError, ProtocolError)):
        wire.connect_tcp(*echo.address, SECRET, theirs).receive()


def test_a_certificate_alone_is_not_enough(echo: Echo, files: TlsFiles) -> None:
    with pytest.raises((OSError, ProtocolError)):
        wire.connect_tcp(*echo.address, b"another secret", files).receive()


def test_a_stranger_that_says_nothing_meets_the_deadline_before_the_certificates(
    files: TlsFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "_HANDSHAKE_TIMEOUT_S", 0.3)
    left, right = socket.socketpair()
    with pytest.raises(TimeoutError):
        wire.accept(left, SECRET, files)
    right.close()


class Doubles:
    """A stage of a slot: returns every row twice."""

    def __init__(self) -> None:
        self.rows: list[bytes] = []

    def accept_chunk(self, row: bytes) -> None:
        self.rows.append(row)

    def run_stage(self, hello: PumpHello) -> Iterator[tuple[int, bytes]]:
        yield from ((0, row + row) for row in self.rows)

    def releasing(self, hello: PumpHello) -> AbstractContextManager[Any]:
        return threading.Lock()


def test_a_pump_on_another_host_comes_in_over_tls(
    files: TlsFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = PumpServer(str(tmp_path), SECRET, 1, Doubles(), loopback_only=False, tls=files)
    tap = Wiretap(("127.0.0.1", server.tcp_port))
    monkeypatch.setattr(pump, "freeze_imports", lambda: None)
    # Another boot id: the pump takes the slot to be on another machine.
    place = ("127.0.0.1", "another machine", server.unix_path, tap.address[1])
    task = PumpTask(PumpHello(1, 1, 0, 10, 10), (place,), SECRET, False, files)
    rows = [b"\0\0\0\0" + b"in the clear" * 1000]
    pumped = list(task(0, iter(rows)))
    assert pumped[1:] == [b"\0\0\0\0" + b"in the clear" * 2000]
    assert len(tap.heard) > 36_000
    assert b"in the clear" not in tap.heard


@pytest.mark.parametrize("missing", ["certificate", "key", "authority"])
def test_half_of_the_settings_is_refused(files: TlsFiles, missing: str) -> None:
    given = {f"rekindle.tls.{name}": getattr(files, name) for name in ("certificate", "key", "authority")}
    assert tls_files(Configuration.from_dict(given).get) == files
    del given[f"rekindle.tls.{missing}"]
    with pytest.raises(ConfigurationError, match=rf"cannot be encrypted without rekindle\.tls\.{missing}: set all of"):
        tls_files(Configuration.from_dict(given).get)


def test_files_of_no_use_are_refused(files: TlsFiles, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    other = make_files(tmp_path / "other")
    for settings in (
        {"certificate": str(tmp_path / "nowhere"), "key": files.key, "authority": files.authority},
        {"certificate": files.certificate, "key": other.key, "authority": files.authority},
        {"certificate": files.certificate, "key": files.key, "authority": str(tmp_path / "empty")},
    ):
        configuration = Configuration.from_dict({f"rekindle.tls.{name}": path for name, path in settings.items()})
        with pytest.raises(ConfigurationError, match=r"The TLS files .* cannot be used: "):
            tls_files(configuration.get)


def test_no_setting_no_tls() -> None:
    assert tls_files(Configuration().get) is None
