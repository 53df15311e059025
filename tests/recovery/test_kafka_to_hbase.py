"""No offset is committed to Kafka before HBase has its row, at any moment, while slots, driver and HBase are killed."""

from __future__ import annotations

import contextlib
import json
import random
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from benchmarks.connector_chaos.processes import Driver
from examples.kafka_to_hbase.job import Place, row_of
from examples.kafka_to_hbase.observer import Observer, RuleBroken
from tests.support.waiting import wait_until
from tools.servers.kafka_access import QUIET, KafkaAccess

PARTITIONS = 2
DEADLINE_S = 120.0
LOOK_EVERY_S = 0.03
PROGRAM = "tests.recovery.programs.kafka_to_hbase"


class Feed:
    """Produces records at a steady rate on a thread; the n-th record of a partition has offset n."""

    def __init__(self, kafka: KafkaAccess, topic: str) -> None:
        self._producer = Producer(kafka.client() | QUIET | {"enable.idempotence": True, "linger.ms": 5})
        self._topic = topic
        self._end = threading.Event()
        self.sent = 0  # per partition
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._end.wait(0.02):
            for _ in range(10):
                for partition in range(PARTITIONS):
                    self._producer.produce(self._topic, str(self.sent).encode(), partition=partition)
                self.sent += 1
            self._producer.poll(0)

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Send the last record, and wait until the broker has all."""
        self._end.set()
        self._thread.join()
        assert self._producer.flush(60) == 0


class Watch:
    """Looks at Kafka and HBase again and again on a thread, some 30 times a second while both answer."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.broken: RuleBroken | None = None
        self.answered_s = 0.0  # how long looks and the pauses after them took, without those that failed
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.is_set() and self.broken is None:
            began = time.monotonic()
            try:
                self.observer.look()
            except RuleBroken as broken:
                self.broken = broken
            except Exception:  # HBase is away
                self._end.wait(0.1)
                continue
            self._end.wait(max(0.0, LOOK_EVERY_S - (time.monotonic() - began)))
            self.answered_s += time.monotonic() - began

    def end(self) -> None:
        """End the thread; an offset without a row fails the test."""
        self._end.set()
        self._thread.join()
        if self.broken is not None:
            raise self.broken


@contextlib.contextmanager
def pipeline(place: Place, keyed: bool, scratch: Path) -> Iterator[Driver]:
    """The job in a process of its own."""
    arguments = [json.dumps(place._asdict()), "keyed" if keyed else "chained", str(scratch / "checkpoints")]
    driver = Driver(arguments, scratch, scratch / "crash", PROGRAM)
    try:
        driver.start(2)
        yield driver
    except BaseException:
        print(driver.tail())
        raise
    finally:
        driver.end()


def await_checkpoints(driver: Driver, more: int = 3) -> None:
    seen = driver.completions
    wait_until(lambda: driver.completions >= seen + more, "checkpoints", DEADLINE_S)


def assert_rows_come_before_offsets(
    kafka: KafkaAccess, hbase: Any, scratch: Path, keyed: bool, kills: Sequence[Callable[[Driver], None]]
) -> None:
    """Watch Kafka and HBase while records flow and processes are killed one after the other."""
    name = f"rule-{uuid.uuid4().hex[:8]}"
    place = Place(kafka.bootstrap_servers, kafka.create_topic(name, PARTITIONS), name, hbase.address, name)
    hbase.create_table(name, "f")
    observer = Observer(place, PARTITIONS)
    with Feed(kafka, name) as feed, pipeline(place, keyed, scratch) as driver:
        watch = Watch(observer)
        await_checkpoints(driver)
        for kill in kills:
            kill(driver)
            await_checkpoints(driver)
        feed.stop()
        all_records = PARTITIONS * feed.sent
        wait_until(lambda: watch.broken or sum(observer.seen.values()) == all_records, "the last commit", DEADLINE_S)
        watch.end()
    observer.close()

    assert observer.seen == dict.fromkeys(range(PARTITIONS), feed.sent)
    # It looks some 30 times a second; on a busy machine each look takes longer.
    assert observer.looks / watch.answered_s > 3
    rows = hbase.rows(name)
    assert rows == {
        row_of(partition, number): {b"f:value": str(number).encode()}
        for partition in range(PARTITIONS)
        for number in range(feed.sent)
    }


def kill_a_slot(driver: Driver) -> None:
    random.Random(7).choice(driver.slots()).kill()


def restart_with_three(driver: Driver) -> None:
    driver.kill()
    driver.start(3)


@pytest.mark.timeout(600)
def test_no_offset_is_committed_before_its_row_is_in_hbase(kafka: KafkaAccess, hbase: Any, tmp_path: Path) -> None:
    assert_rows_come_before_offsets(kafka, hbase, tmp_path, True, [kill_a_slot, restart_with_three])


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("keyed", [False, True], ids=["chained", "keyed"])
def test_no_offset_is_committed_before_its_row_is_in_an_hbase_that_is_killed(
    kafka: KafkaAccess, own_hbase: Any, tmp_path: Path, keyed: bool
) -> None:
    hbase = own_hbase()

    def kill_hbase(driver: Driver) -> None:
        hbase.kill_hbase()
        hbase.restart_hbase()

    def kill_thrift(driver: Driver) -> None:
        hbase.kill_thrift()
        hbase.restart_thrift()

    kills = [kill_a_slot, kill_hbase, restart_with_three, kill_thrift]
    assert_rows_come_before_offsets(kafka, hbase, tmp_path, keyed, kills)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("keyed", [False, True], ids=["chained", "keyed"])
def test_the_log_shows_each_step_and_inside_a_chain_the_sink_comes_first(
    kafka: KafkaAccess, hbase: Any, tmp_path: Path, keyed: bool
) -> None:
    name = f"trace-{uuid.uuid4().hex[:8]}"
    place = Place(kafka.bootstrap_servers, kafka.create_topic(name, 1), name, hbase.address, name)
    hbase.create_table(name, "f")
    with pipeline(place, keyed, tmp_path) as driver:
        wait_until(lambda: len(steps_of(driver, "1/2")) >= 12, "two checkpoints in the log", DEADLINE_S)
        steps = steps_of(driver, "1/2")
    of_source = [step.removeprefix("KafkaSource ") for step in steps if step.startswith("KafkaSource")]
    of_sink = [step.removeprefix("HBaseSink ") for step in steps if step.startswith("HBaseSink")]
    for own in (of_source, of_sink):
        assert own[:4] == [
            "initializeState",
            "snapshotState begin",
            "snapshotState end",
            "notifyCheckpointComplete 1",
        ]
    if not keyed:
        assert steps[:8] == [
            "HBaseSink initializeState",
            "KafkaSource initializeState",
            "HBaseSink snapshotState begin",
            "HBaseSink snapshotState end",
            "KafkaSource snapshotState begin",
            "KafkaSource snapshotState end",
            "HBaseSink notifyCheckpointComplete 1",
            "KafkaSource notifyCheckpointComplete 1",
        ]


def steps_of(driver: Driver, subtask: str) -> list[str]:
    """The steps that a subtask of the pipeline has logged."""
    found = [re.search(rf"\({subtask}\).* L\d+ ((KafkaSource|HBaseSink) .*)", line) for line in driver.log]
    return [match[1] for match in found if match]
