"""Nothing grows with the number of checkpoints (I12): parts, files, the manifest, a slot's inventory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rekindle.checkpoint import manifest as manifests
from rekindle.checkpoint.compaction import RULES
from rekindle.common import Types, WatermarkStrategy
from rekindle.datastream import KeyedProcessFunction, RuntimeContext
from rekindle.datastream.connectors.datagen import DataGeneratorSource
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.runtime.operators.keyed import KeyedOperator
from rekindle.runtime.state.rocksdb.rocks_backend import RocksKeyedBackend
from rekindle.testing import InProcessJob
from tests.support.environments import checkpointed

CHECKPOINTS = 300
RECORDS_EACH = 20
KEYS = 400
FAR = 10**15


class Remember(KeyedProcessFunction):
    """State of each kind whose size does not grow, and a timer per key that is moved with each record."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.STRING()))
        self.recent = runtime_context.get_list_state(ListStateDescriptor("recent", Types.LONG()))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        service = ctx.timer_service()
        before = self.last.value()
        if before is not None:
            service.delete_event_time_timer(FAR + int(before))
        service.register_event_time_timer(FAR + value)
        self.last.update(f"{value:0100d}")
        self.recent.update([*self.recent.get(), value][-5:])
        self.seen.put(value % 7, value)
        yield from ()


def job(restore: Any = None) -> InProcessJob:
    env = checkpointed(2)
    source = DataGeneratorSource(lambda n: n * 7919, 10**9)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int)
    stream = numbers.key_by(lambda n: n % KEYS, int).process(Remember(), int)
    return InProcessJob.of(stream, max_records=RECORDS_EACH // 2, restore=restore)


def keyed_operators(running: InProcessJob) -> list[KeyedOperator]:
    operators = [operator for task in running.tasks.values() for operator in task._operators.values()]
    return [operator for operator in operators if isinstance(operator, KeyedOperator)]


def test_three_hundred_checkpoints() -> None:
    running = job()
    sizes: list[int] = []
    for number in range(1, CHECKPOINTS + 1):
        checkpoint = running.checkpoint()
        if number % 10 == 3:
            running.abort(running.checkpoint(complete=False))
        if number % 100 == 50:  # a restart goes on with the deltas of the attempt before it
            running.kill()
            running = job(checkpoint)
        manifest = checkpoint.manifest
        sizes.append(len(manifests.encode(manifest)))
        for operator in manifest.operators:
            for subtask in operator.subtasks:
                for parts in (subtask.keyed, subtask.timers):
                    per_group = Counter(part.key_group for part in parts)
                    assert max(per_group.values(), default=0) <= RULES.most_deltas + 1
                assert len(subtask.file_bytes) <= RULES.most_files + 2 * 64
        assert sum(manifest.files().values()) < 4 * KEYS * 200
    for keyed_operator in keyed_operators(running):
        assert len(keyed_operator.keyed.inventories._inventories) == 1
        keyed: Any = keyed_operator.keyed
        changes = keyed.log if isinstance(keyed, RocksKeyedBackend) else keyed._changes
        assert len(changes._sealed) <= 1
        timer_changes: Any = keyed_operator.timers.event.changes
        assert len(timer_changes._sealed) <= 1
    assert max(sizes[200:]) < 1.5 * max(sizes[100:200])
    running.kill()
