"""Scenes in which Spark or a slot fails a job, on a session of the user's own with Spark's default retry settings.

    python spark_faults.py

Plays every scene once. Prints a line of JSON for each: the name of the scene, and its results or its error.

Each scene patches this process, or the slots through a function's `open`. The engine has no code for these scenes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar
from unittest import mock

from pyspark import TaskContext
from pyspark.sql import SparkSession

from rekindle import wire
from rekindle.common import Configuration, JobStatus, Types, WatermarkStrategy
from rekindle.coordinator import epoch_loop
from rekindle.datastream import (
    KeyedProcessFunction,
    MapFunction,
    SinkFunction,
    SourceFunction,
    StreamExecutionEnvironment,
)
from rekindle.datastream.connectors.base import Boundedness, Source, SourceReader, SourceSplit
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.errors import RekindleError
from rekindle.spark import shuffle as exchange
from rekindle.spark.pump import PumpTask
from rekindle.spark.spark_cluster import SparkCluster
from rekindle.system import readable

KEYS = 4
RECORDS = 200
#: Epochs of 100 records, 50 from each of two source subtasks, in chunks of a few.
SETTINGS = {
    "rekindle.progress": "off",
    "rekindle.epoch.max-records": "50",
    "rekindle.epoch.initial-records": "50",
    "rekindle.epoch.chunk-records": "1",
}
EPOCH = 1
IN_ONE_EPOCH = SETTINGS | {"rekindle.epoch.max-records": str(RECORDS), "rekindle.epoch.initial-records": str(RECORDS)}
#: No setting of retries or failures: those stay at Spark's defaults.
QUIET_AND_QUICK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
}


# -- the job ----------------------------------------------------------------------------------------------------------


class Numbers(Source[int]):
    """Every number once, from two splits, in batches of ten: so an epoch has several chunks for each subtask."""

    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        return [SourceSplit(str(begin), begin) for begin in (0, RECORDS // 2)]

    def create_reader(self, context: Any, splits: list[SourceSplit]) -> SourceReader[int]:
        half = RECORDS // 2
        return TenAtATime([number for split in splits for number in range(split.position, split.position + half)])


class TenAtATime(SourceReader[int]):
    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers

    def poll(self, max_records: int) -> list[int] | None:
        taken, self.numbers = self.numbers[:10], self.numbers[10:]
        return taken or None

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        return []


class Count(KeyedProcessFunction):
    """How many numbers each key has seen."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Iterator[tuple[int, int]]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


class WithoutFence(MapFunction):
    """Removes the fence from the slot in which it is opened."""

    def open(self, runtime_context: Any) -> None:
        from rekindle.runtime.pump_server import StageFence

        assert callable(StageFence.refusal)
        StageFence.refusal = lambda self, hello: None  # type: ignore[method-assign]

    def map(self, value: int) -> int:
        return value


def count(settings: Mapping[str, str] = SETTINGS, fence: bool = True) -> dict[str, int]:
    """The highest count of each key, as the job reports it."""
    env = environment_with(settings)
    numbers = env.from_source(Numbers(), WatermarkStrategy.no_watermarks(), "numbers", int)
    if not fence:
        numbers = numbers.map(WithoutFence(), int)
    counts = numbers.key_by(lambda number: number % KEYS, Types.LONG()).process(Count(), tuple[int, int])
    highest: dict[str, int] = {}
    with counts.execute_and_collect("counted") as results:
        for key, counted in results:
            highest[str(key)] = max(counted, highest.get(str(key), 0))
    return dict(sorted(highest.items()))


def environment_with(settings: Mapping[str, str] = SETTINGS) -> StreamExecutionEnvironment:
    configuration = Configuration.from_dict(dict(settings))
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


# -- fault: Spark runs a task again ------------------------------------------------------------------------------------


class FailsAfterFeeding(PumpTask):
    """The task of slot 1 in one stage of one epoch fails after its slot has finished the stage."""

    __slots__ = ()
    stage: ClassVar[int]

    def _pump(self, slot: int, rows: Iterable[bytes]) -> Iterator[bytes]:
        yield from super()._pump(slot, rows)
        context = TaskContext.get()
        assert context is not None
        if (self.hello.epoch, self.hello.stage, slot, context.attemptNumber()) == (EPOCH, self.stage, 1, 0):
            raise RuntimeError("the executor had a bad moment")


class SourceTaskFails(FailsAfterFeeding):
    __slots__ = ()
    stage = 0


class KeyedTaskFails(FailsAfterFeeding):
    __slots__ = ()
    stage = 1


# -- fault: Spark loses a row, or delivers it twice --------------------------------------------------------------------


class Unreliable(PumpTask):
    """Changes the pairs of key and row that slot 0 sends into the shuffle of one epoch."""

    __slots__ = ()

    def _pump(self, slot: int, rows: Iterable[bytes]) -> Iterator[bytes]:
        sent = list(super()._pump(slot, rows))
        if (self.hello.epoch, self.hello.stage, slot) == (EPOCH, 0, 0):
            pairs = list(zip(sent[::2], sent[1::2], strict=True))
            sent = [part for pair in self.change(pairs) for part in pair]
        yield from sent

    def change(self, pairs: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        raise NotImplementedError


class LosesTheFirst(Unreliable):
    __slots__ = ()

    def change(self, pairs: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        return pairs[1:]


class LosesTheLast(Unreliable):
    """The sequence has no gap: only the counts show the loss."""

    __slots__ = ()

    def change(self, pairs: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        return pairs[:-1]


class RepeatsOne(Unreliable):
    __slots__ = ()

    def change(self, pairs: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        return [*pairs, pairs[-1]]


def with_pump(pump: type[PumpTask]) -> Any:
    return mock.patch.object(exchange, "PumpTask", pump)


# -- fault: a slot dies although the Spark job has succeeded -----------------------------------------------------------


class LosesASlot:
    """In place of `SparkCluster.run_epoch`: kills slot 1 when the chosen epoch's Spark job has returned its rows."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.epochs = 0
        self._run = SparkCluster.run_epoch

    def patched(self) -> Any:
        return mock.patch.object(SparkCluster, "run_epoch", lambda cluster, run: self.run_epoch(cluster, run))

    def run_epoch(self, cluster: SparkCluster, run: Any) -> list[bytes]:
        rows = self._run(cluster, run)
        self.epochs = run.epoch
        if run.epoch == self.epoch:
            kill(cluster._placements[-1].slots[1].pid)
        return rows


def kill(pid: int) -> None:
    """Kill a process, and return when it has ended."""
    descriptor = os.pidfd_open(pid)
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    assert readable([descriptor], 10.0), "a killed process ends"
    os.close(descriptor)


@contextlib.contextmanager
def late_readers() -> Iterator[None]:
    """The driver's reader threads learn of a connection's end only when the job is over."""
    over, receive = threading.Event(), wire.Connection.receive

    def receive_late(connection: wire.Connection, *arguments: Any, **options: Any) -> bytes:
        try:
            return receive(connection, *arguments, **options)
        except wire.ConnectionClosedError:
            over.wait(10.0)
            raise

    with mock.patch.object(wire.Connection, "receive", receive_late):
        try:
            yield
        finally:
            over.set()


def lose_a_slot_at_the_end(unseen: bool = False) -> dict[str, int]:
    with contextlib.ExitStack() as changes:
        changes.enter_context(LosesASlot(epoch=1).patched())
        if unseen:
            changes.enter_context(late_readers())
        return count(IN_ONE_EPOCH)


def count_epochs() -> dict[str, int]:
    """The same job, undisturbed: it has one epoch, so that no later epoch could notice a dead slot."""
    undisturbed = LosesASlot(epoch=0)
    with undisturbed.patched():
        counted = count(IN_ONE_EPOCH)
    return {**counted, "epochs": undisturbed.epochs}


class DiesInClose(SinkFunction):
    """A sink that holds records back until it is closed, and dies before that."""

    def open(self, runtime_context: Any) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def invoke(self, value: int, context: Any) -> None:
        self.held_back = value

    def close(self) -> None:
        if self.subtask == 1:
            os.kill(os.getpid(), signal.SIGKILL)


def die_in_close() -> None:
    env = environment_with()
    env.from_sequence(1, 10).add_sink(DiesInClose())
    env.execute("held back")


# -- a borrowed session -----------------------------------------------------------------------------------------------


class Endless(SourceFunction):
    def __init__(self) -> None:
        self.stopped = False

    def run(self, ctx: Any) -> None:
        pause, number = threading.Event(), 0
        while not self.stopped:
            ctx.collect(number)
            number += 1
            pause.wait(0.01)

    def cancel(self) -> None:
        self.stopped = True


def condition_of(spark: SparkSession) -> dict[str, Any]:
    """The settings of a session that a user may have changed, and its state."""
    sc = spark.sparkContext
    properties = sc._jsc.sc().getLocalProperties()
    return {
        "conf": dict(sc.getConf().getAll()),
        "sql": {name: spark.conf.get(name) for name in ("spark.sql.shuffle.partitions", "spark.sql.session.timeZone")},
        "properties": {name: properties.getProperty(name) for name in properties.stringPropertyNames()},
        "environment": dict(sc.environment),
        "interrupt": repr(signal.getsignal(signal.SIGINT)),
        "persistent": sc._jsc.getPersistentRDDs().size(),
        "level": str(sc._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel()),  # type: ignore[union-attr]
        "active": SparkSession.getActiveSession() is spark,
        "thousand": spark.range(1000).count(),
    }


def stop_while_a_job_runs(spark: SparkSession) -> None:
    env = environment_with()
    env.add_source(Endless()).rebalance().add_sink(lambda number: None)
    client = env.execute_async("stopped under it")
    result = client.get_job_execution_result()
    running = threading.Event()
    while client.get_job_status().result() is not JobStatus.RUNNING and not result.done():
        running.wait(0.02)
    spark.stop()
    result.result()


# -- all scenes --------------------------------------------------------------------------------------------------------


def play(scene: str, act: Callable[[], Any]) -> None:
    try:
        told = {"results": act()}
    except RekindleError as error:
        told = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps({"scene": scene, **told}), flush=True)


def main() -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in QUIET_AND_QUICK.items():
        builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.sparkContext.setLocalProperty("mine", "kept")
    before = condition_of(spark)
    # Spark reports the failure in most scenes here: the slots send no explanation, so the driver need not wait for one.
    epoch_loop._SLOT_ERROR_S = 0.2
    play("undisturbed", count_epochs)
    for name, failing in (("source task", SourceTaskFails), ("keyed task", KeyedTaskFails)):
        with with_pump(failing):
            play(f"{name} again", count)
            play(f"{name} again, no fence", lambda: count(fence=False))
    unreliable: dict[str, type[PumpTask]] = {"first": LosesTheFirst, "last": LosesTheLast, "repeated": RepeatsOne}
    for name, pump in unreliable.items():
        with with_pump(pump):
            play(name, count)
    play("slot dies", lose_a_slot_at_the_end)
    play("slot dies unseen", lambda: lose_a_slot_at_the_end(unseen=True))
    play("slot dies in close", die_in_close)
    play("borrowed", lambda: [before, condition_of(spark)])
    frame = spark.range(10)
    play("stopped", lambda: stop_while_a_job_runs(spark))
    play("frame of a stopped session", lambda: environment_with().from_dataframe(frame).execute_and_collect("late"))


if __name__ == "__main__":
    main()
