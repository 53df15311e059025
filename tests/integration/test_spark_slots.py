"""Spark places slots: one process per launch, with a readable name, that ends when the driver's lifeline closes."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rekindle import protocol, wire
from rekindle.clock import SystemClock
from rekindle.coordinator.cluster import EpochRun, SlotAddress
from rekindle.errors import ClusterError, JobCancelledError
from rekindle.runtime.directories import make_directory, remove_abandoned
from rekindle.spark import internals
from rekindle.spark import slots as placing
from rekindle.spark.slots import SpawnedSlot, spawn_slots
from rekindle.system import readable
from tests.support.standalone_cluster import free_ports
from tests.support.waiting import becomes_true

SECRET = b"slots-test-secret"


class Driver:
    """The driver's side: accepts connections, and keeps the first message of each."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.connections: list[wire.Connection] = []
        self.hellos: list[Any] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = wire.accept(self._server.accept()[0], SECRET)
                hello = protocol.decode_from_slot(connection.receive())
                with self._changed:
                    self.connections.append(connection)
                    self.hellos.append(hello)
                    self._changed.notify_all()

    def wait_for(self, kind: type, count: int) -> list[Any]:
        with self._changed:
            self._changed.wait_for(lambda: sum(isinstance(each, kind) for each in self.hellos) >= count, 60)
            return [each for each in self.hellos if isinstance(each, kind)]

    def close(self) -> None:
        self._server.close()
        for connection in self.connections:
            connection.close()


@pytest.fixture
def driver() -> Iterator[Driver]:
    end = Driver()
    yield end
    end.close()


def launches(port: int, count: int) -> list[protocol.SlotLaunch]:
    return [
        protocol.SlotLaunch(
            "job", "word count", 1, slot, count, "127.0.0.1", port, SECRET, protocol.Heartbeat(1000, 60_000)
        )
        for slot in range(count)
    ]


def test_slots_run_where_spark_puts_them_and_go_with_the_driver(spark: Any, driver: Driver) -> None:
    placement = spawn_slots(spark.sparkContext, launches(driver.port, 3), SystemClock())
    assert [each.slot for each in placement.slots] == [0, 1, 2]
    lifelines = driver.wait_for(protocol.Lifeline, 3)
    hellos = sorted(driver.wait_for(protocol.SlotHello, 3), key=lambda hello: hello.slot)
    assert sorted(lifeline.slot for lifeline in lifelines) == [0, 1, 2]
    assert [hello.pid for hello in hellos] == [each.pid for each in placement.slots]
    for each in placement.slots:
        assert each.host == socket.gethostname()
        command = Path(f"/proc/{each.pid}/cmdline").read_bytes().split(b"\0")
        assert command[1:-1] == [b"-m", b"rekindle.runtime.slot", b"word count", str(each.slot).encode()]
        assert b"PYTHON_WORKER_FACTORY_SECRET" not in Path(f"/proc/{each.pid}/environ").read_bytes()
    directories = [Path(hello.unix_path).parent for hello in hellos]
    assert all(directory.stat().st_mode & 0o777 == 0o700 for directory in directories)
    pidfds = [os.pidfd_open(each.pid) for each in placement.slots]
    driver.close()
    assert ended_within(pidfds, 2.0) == len(pidfds)
    becomes_true(lambda: not any(directory.exists() for directory in directories), deadline_s=5.0)
    assert not any(directory.exists() for directory in directories)


def test_the_spawning_job_says_what_it_does(spark: Any, driver: Driver) -> None:
    spawn_slots(spark.sparkContext, launches(driver.port, 1), SystemClock())
    tracker = spark.sparkContext.statusTracker()
    (job,) = tracker.getJobIdsForGroup("job")[-1:]
    (stage,) = tracker.getJobInfo(job).stageIds
    assert tracker.getStageInfo(stage).name == "start slots of word count"


def test_a_slot_that_does_not_start_says_why(spark: Any) -> None:
    (port,) = free_ports(1)
    with pytest.raises(ClusterError) as caught:
        spawn_slots(spark.sparkContext, launches(port, 2), SystemClock())
    said = str(caught.value)
    assert "\n" not in said
    assert f"ended while it started: Slot {said[5]} cannot reach the driver at 127.0.0.1:{port}" in said
    # Slots of jobs elsewhere on this machine may be dying just now, with their directories.
    becomes_true(lambda: not abandoned_directories(), deadline_s=5.0)
    assert not abandoned_directories()


def abandoned_directories() -> list[str]:
    return [name for name in os.listdir("/tmp") if name.startswith("rekindle-slot-") and is_abandoned(name)]


def test_directories_of_the_killed_are_removed_by_the_next(tmp_path: Path) -> None:
    parent = os.fspath(tmp_path)
    dead, alive = (make_directory("kind-", name, parent) for name in ("dead", "alive"))
    unfinished = tmp_path / "kind-unfinished"
    unfinished.mkdir()
    dead.release_lock()
    remove_abandoned("kind-", parent)
    assert [os.path.exists(each) for each in (dead.path, alive.path, unfinished)] == [False, True, True]
    alive.release_lock()
    remove_abandoned("kind-", parent)
    assert not os.path.exists(alive.path)


def test_waiting_for_executors_can_be_cancelled() -> None:
    class NoExecutors:
        master = "spark://nowhere:7077"

        def getConf(self) -> dict[str, str]:
            return {}

    cancelled = threading.Event()
    cancelled.set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(internals, "registered_executors", lambda sc: 0)
        with pytest.raises(JobCancelledError):
            placing.wait_for_executors(NoExecutors(), 2, SystemClock(), cancelled)  # type: ignore[arg-type]


def test_the_cluster_starts_slots_and_runs_epochs(spark: Any, driver: Driver) -> None:
    cluster = borrowing_cluster(spark)
    assert cluster.driver_host() == "127.0.0.1"
    assert cluster.is_on_this_machine
    started = cluster.start_slots(launches(driver.port, 2))
    assert [type(each) for each in started] == [SpawnedSlot, SpawnedSlot]
    hellos = sorted(driver.wait_for(protocol.SlotHello, 2), key=lambda hello: hello.slot)
    addresses = tuple(SlotAddress(each.host, each.boot_id, each.unix_path, each.tcp_port) for each in hellos)
    run = EpochRun("job", "word count", 1, 1, ("source", "sink"), addresses, SECRET, 100, 100)
    assert cluster.run_epoch(run) == []
    cluster.close()
    assert spark.range(3).count() == 3  # a borrowed session stays


# -- a Spark that has no room for slots --------------------------------------------------------------------------------


@contextlib.contextmanager
def no_free_core(spark: Any, folder: Path) -> Iterator[None]:
    """Inside the block another Spark job holds every core, so that Spark starts no task."""
    sc = spark.sparkContext
    cores, free = sc.defaultParallelism, os.fspath(folder / "free")

    def hold(partition: int, rows: Iterator[int]) -> Iterator[int]:
        Path(f"{free}-{partition}").touch()
        until = time.monotonic() + 120
        while not os.path.exists(free) and time.monotonic() < until:
            threading.Event().wait(0.05)
        return rows

    holding = threading.Thread(
        target=lambda: sc.parallelize(range(cores), cores).mapPartitionsWithIndex(hold).count(), daemon=True
    )
    holding.start()
    try:
        assert becomes_true(lambda: len(list(folder.glob("free-*"))) == cores, deadline_s=60.0)
        yield
    finally:
        Path(free).touch()
        holding.join()


def borrowing_cluster(spark: Any, **settings: str) -> Any:
    from rekindle.common import Configuration
    from rekindle.spark.session import SessionLease
    from rekindle.spark.spark_cluster import SparkCluster

    configuration = Configuration.from_dict({key.replace("_", "."): value for key, value in settings.items()})
    return SparkCluster(SessionLease(spark.sparkContext, owned=False), configuration, SystemClock())


def test_slots_for_which_there_is_no_room_are_given_up_at_the_deadline(
    spark: Any, driver: Driver, tmp_path: Path
) -> None:
    cluster = borrowing_cluster(spark, slot_request_timeout="1 s")
    with no_free_core(spark, tmp_path):
        with pytest.raises(ClusterError) as caught:
            cluster.start_slots(launches(driver.port, 2))
        assert str(caught.value).startswith("Spark did not start the 2 slots of job 'word count' within 1 s")
        assert internals.active_tasks(spark.sparkContext, "job") == 0
    # Spark has forgotten the job that it never ran: the slots of the next attempt are the only ones.
    cluster = borrowing_cluster(spark)
    assert len(cluster.start_slots(launches(driver.port, 2))) == 2
    assert len(driver.wait_for(protocol.SlotHello, 2)) == 2
    cluster.close()


def test_a_start_of_slots_that_waits_for_room_can_be_cancelled(spark: Any, driver: Driver, tmp_path: Path) -> None:
    cluster = borrowing_cluster(spark)
    tracker, before = (
        spark.sparkContext.statusTracker(),
        len(spark.sparkContext.statusTracker().getJobIdsForGroup("job")),
    )

    def cancel_when_submitted() -> None:
        becomes_true(lambda: len(tracker.getJobIdsForGroup("job")) > before, deadline_s=60.0)
        cluster.cancel_epoch()
        cancelled_at.append(time.monotonic())

    cancelled_at: list[float] = []
    with no_free_core(spark, tmp_path):
        threading.Thread(target=cancel_when_submitted).start()
        with pytest.raises(JobCancelledError):
            cluster.start_slots(launches(driver.port, 2))
        assert time.monotonic() - cancelled_at[0] < 5.0
    cluster.close()


def ended_within(pidfds: list[int], deadline_s: float) -> int:
    end, ended = time.monotonic() + deadline_s, 0
    for pidfd in pidfds:
        ended += bool(readable([pidfd], end - time.monotonic()))
        os.close(pidfd)
    return ended


def is_abandoned(name: str) -> bool:
    """Whether no process holds the directory's lock: then it should have been removed."""
    import fcntl

    try:
        with open(f"/tmp/{name}/alive", "rb") as alive:
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
