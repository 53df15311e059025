"""The pump without Spark, against a fake slot."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable

import pytest

from rekindle.errors import ProtocolError, SlotLostError
from rekindle.protocol import TO_DRIVER, PumpHello
from rekindle.spark.pump import PumpTask, connect_to_slot
from tests.support.fake_slot import FakeSlot, fake_slots, silent

SECRET = b"pump-test-secret"
HELLO = PumpHello(1, 1, 0, 100, 100)


def task(slots: list[FakeSlot], is_last: bool = False, hello: PumpHello = HELLO) -> PumpTask:
    addresses = [slot.address for slot in slots]
    places = tuple((each.host, each.boot_id, each.unix_path, each.tcp_port) for each in addresses)
    return PumpTask(hello, places, SECRET, is_last)


def chunk(destination: int, data: bytes) -> bytes:
    return struct.pack("<I", destination) + data


def key(partition: int) -> bytes:
    return struct.pack("!q", partition)


def echo(hello: PumpHello, chunks: list[bytes]) -> Iterable[tuple[int, bytes]]:
    return [(5, data) for data in chunks] + [(TO_DRIVER, b"done")]


def test_rows_go_in_and_come_out_with_their_partition_before_them() -> None:
    with fake_slots(SECRET, [silent, echo]) as slots:
        out = list(task(slots)(1, [chunk(1, b"a"), chunk(1, b"b")]))
    assert out == [key(5), chunk(5, b"a"), key(5), chunk(5, b"b"), key(1), chunk(TO_DRIVER, b"done")]


def test_the_drivers_rows_stay_with_their_partition_and_are_not_shown_to_the_slot() -> None:
    with fake_slots(SECRET, [silent, echo]) as slots:
        out = list(task(slots)(1, [chunk(TO_DRIVER, b"early"), chunk(1, b"a")]))
    assert out == [key(1), chunk(TO_DRIVER, b"early"), key(5), chunk(5, b"a"), key(1), chunk(TO_DRIVER, b"done")]


def test_the_last_stage_yields_rows_alone() -> None:
    with fake_slots(SECRET, [lambda hello, chunks: [(TO_DRIVER, b"x")]]) as slots:
        assert list(task(slots, is_last=True)(0, [chunk(TO_DRIVER, b"early")])) == [
            chunk(TO_DRIVER, b"early"),
            chunk(TO_DRIVER, b"x"),
        ]


def test_a_chunk_for_a_slot_in_the_last_stage_is_a_mistake_of_ours() -> None:
    with fake_slots(SECRET, [echo]) as slots, pytest.raises(AssertionError, match="sent a chunk to slot 5"):
        list(task(slots, is_last=True)(0, [chunk(0, b"a")]))


def test_a_task_that_runs_again_is_refused() -> None:
    with fake_slots(SECRET, [silent]) as slots:
        assert list(task(slots)(0, [])) == []
        with pytest.raises(ProtocolError, match="Slot 0 refused: attempt 1, epoch 1, stage 0 was here before"):
            list(task(slots)(0, []))


def test_a_slot_that_has_gone_is_named() -> None:
    with fake_slots(SECRET, [silent]) as slots:
        pump = task(slots)
    with pytest.raises(SlotLostError, match=r"Slot 0 on 127\.0\.0\.1 does not answer in epoch 1, stage 0"):
        list(pump(0, []))


def test_a_broken_unix_socket_is_passed_over_for_tcp() -> None:
    with fake_slots(SECRET, [silent]) as slots:
        address = slots[0].address
        slots[0]._unix.close()
        connection = connect_to_slot(address.host, address.boot_id, address.unix_path, address.tcp_port, SECRET)
        connection.close()
        with pytest.raises(ConnectionRefusedError):
            connect_to_slot(address.host, address.boot_id, address.unix_path, 0, SECRET)


def test_a_slot_of_another_machine_without_a_port_is_not_tried() -> None:
    with pytest.raises(ConnectionRefusedError, match="listens on its own machine only"):
        connect_to_slot("far", "another boot", "/nowhere", 0, SECRET)


def test_the_task_travels_by_name_and_is_small() -> None:
    with fake_slots(SECRET, [echo]) as slots:
        data = pickle.dumps(task(slots))
        assert len(data) < 600
        assert b"rekindle.spark.pump" in data
        assert list(pickle.loads(data)(0, [chunk(0, b"a")])) == [
            key(5),
            chunk(5, b"a"),
            key(0),
            chunk(TO_DRIVER, b"done"),
        ]
