"""The slot's side of a pump (I2): when the pump is released, and when the snapshot is queued."""

from __future__ import annotations

import contextlib
import threading

from rekindle import wire
from rekindle.protocol import END_OF_STAGE, CheckpointOrder, PumpHello, decode_pump_reply, encode_pump
from rekindle.runtime.pump_server import PumpServer

DEADLINE_S = 30


class Host:
    """Stands for the slot that hosts the server; notes the calls that it gets, in order."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.may_end = threading.Event()
        self.ended = threading.Event()

    def accept_chunk(self, row):
        self.events.append("row")

    def run_stage(self, hello):
        self.events.append("run")
        yield 0, b"out"

    @contextlib.contextmanager
    def releasing(self, hello):
        self.events.append("snapshots queued")
        yield
        self.may_end.wait(DEADLINE_S)
        self.events.append("released")
        self.ended.set()


def test_the_pump_is_released_before_the_snapshot_and_the_snapshot_is_queued_before_the_pump_goes(tmp_path):
    """I2: Spark need not wait for a slow snapshot, and no input of the next epoch can overtake it."""
    host = Host()
    server = PumpServer(str(tmp_path), b"secret", 1, host, loopback_only=True)
    pump = wire.connect_unix(server.unix_path, b"secret")
    pump.set_timeout(DEADLINE_S)
    pump.send(encode_pump(PumpHello(1, 1, 0, 10, 10, CheckpointOrder(1, 0))))
    assert decode_pump_reply(pump.receive()).refused is None
    pump.send(b"in")
    pump.send(b"")
    assert pump.receive().endswith(b"out")
    assert pump.receive() == END_OF_STAGE, "the pump waits for the snapshot"
    assert host.events == ["row", "run", "snapshots queued"]
    host.may_end.set()
    assert host.ended.wait(DEADLINE_S)
    pump.close()
