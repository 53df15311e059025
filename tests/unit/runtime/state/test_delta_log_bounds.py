"""Checkpoints that keep failing: what waits for the next delta stays bounded, in memory and on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Configuration, Types, WatermarkStrategy
from rekindle.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.runtime.operators.keyed import KeyedOperator
from rekindle.runtime.state.rocksdb.delta_log import DeltaLog
from rekindle.runtime.state.rocksdb.rocks_backend import RocksKeyedBackend
from rekindle.testing import InProcessJob

KEYS, RECORDS_EACH, ABORTED = 200, 40, 300
LOG_BYTES = 32 << 10
STATE_BYTES = 300 << 10
#: The changes of one checkpoint, at most.
DELTA_BYTES = 400 * RECORDS_EACH


class Remember(KeyedProcessFunction):
    """State of each kind whose size does not grow; reports all of it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.STRING()))
        self.recent = runtime_context.get_list_state(ListStateDescriptor("recent", Types.LONG()))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        count = int(self.count.value() or 0) + 1
        self.count.update(f"{count:0100d}")
        self.recent.add(value)
        if count % 5 == 0:
            self.recent.update(list(self.recent.get())[-2:])
        self.seen.put(value % 7, count)
        yield f"{value} {count} {list(self.recent.get())} {sorted(self.seen.items())}"


def job(restore: Any = None) -> InProcessJob:
    settings = {"state.backend.type": "rocksdb", "taskmanager.memory.managed.size": "8mb"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(1).set_max_parallelism(8).enable_checkpointing(60_000)
    source = DataGeneratorSource(lambda n: n * 7919 % 10_007, 10**9)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int)
    stream = numbers.key_by(lambda n: n % KEYS, int).process(Remember(), Types.STRING())
    running = InProcessJob.of(stream, max_records=RECORDS_EACH, restore=restore)
    log = log_of(running)
    log._most_bytes = LOG_BYTES
    return running


def keyed_of(running: InProcessJob) -> RocksKeyedBackend:
    operators = [operator for task in running.tasks.values() for operator in task._operators.values()]
    (found,) = [operator.keyed for operator in operators if isinstance(operator, KeyedOperator)]
    assert isinstance(found, RocksKeyedBackend)
    return found


def log_of(running: InProcessJob) -> DeltaLog:
    return keyed_of(running).log


def bytes_in_memory(log: DeltaLog) -> int:
    return sum(segment.encoded_bytes for segment in log._sealed)


def bytes_on_disk(running: InProcessJob) -> int:
    return sum(file.stat().st_size for file in Path(running._directory.name).rglob("spill-*"))


def abort_many(running: InProcessJob) -> tuple[int, int, int]:
    """The most bytes of the log in memory and on disk, and the most segments, at any time."""
    memory = disk = segments = 0
    keyed = keyed_of(running)
    for _ in range(ABORTED):
        running.abort(running.checkpoint(complete=False))
        memory = max(memory, bytes_in_memory(keyed.log))
        disk, segments = max(disk, bytes_on_disk(running)), max(segments, len(keyed.log._sealed))
    return memory, disk, segments


def test_hundreds_of_aborted_checkpoints_leave_little_and_lose_nothing() -> None:
    running, undisturbed = job(), job()
    running.checkpoint()
    undisturbed.checkpoint()
    log = log_of(running)
    assert log._state_bytes == keyed_of(running).database.live_bytes
    log._state_bytes = lambda: STATE_BYTES  # RocksDB's estimate depends on when it compacts
    memory, disk, segments = abort_many(running)
    assert disk > 0
    assert memory <= LOG_BYTES + DELTA_BYTES
    assert disk <= LOG_BYTES + DELTA_BYTES + STATE_BYTES < ABORTED * DELTA_BYTES // 4
    assert segments < ABORTED // 2
    for _ in range(ABORTED):
        undisturbed.epoch()
    checkpoint = running.checkpoint()
    running.kill()
    restored = job(checkpoint)
    assert checkpoint.results == undisturbed.epoch()
    for _ in range(5):
        assert restored.epoch() == undisturbed.epoch()
    restored.kill()
    undisturbed.kill()


def test_what_was_dropped_is_written_whole_until_a_checkpoint_completes(monkeypatch: pytest.MonkeyPatch) -> None:
    running = job()
    first = running.checkpoint()
    monkeypatch.setattr("rekindle.runtime.state.rocksdb.delta_log._MOST_SEGMENTS", 2)
    for _ in range(3):
        running.abort(running.checkpoint(complete=False))
    assert log_of(running)._forgotten
    second, third = running.checkpoint(), running.checkpoint()
    whole = [sum(part.kind == "full" and part.order == each.id for part in parts_of(each)) for each in (second, third)]
    assert whole[0] == len({part.key_group for part in parts_of(second)})
    assert (whole[1], log_of(running)._forgotten) == (0, {})
    assert first.id < second.id
    running.kill()


def parts_of(checkpoint: Any) -> list[Any]:
    operators = checkpoint.manifest.operators
    return [part for operator in operators for subtask in operator.subtasks for part in subtask.keyed]
