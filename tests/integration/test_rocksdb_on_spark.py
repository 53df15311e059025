"""Jobs on Spark with state in RocksDB: they survive killed slots and leave nothing on the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rekindle.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from rekindle.crash_points import CRASH_AT, CRASH_ONCE
from rekindle.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.errors import ConfigurationError
from tests.waiting import wait_until

KEYS, NUMBERS = 300, 12_000


class Everything(KeyedProcessFunction):
    """Keeps a number's place among those of its key in a value, a list and a map."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.last = runtime_context.get_list_state(ListStateDescriptor("last", Types.LONG()))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[int, int, int, int]]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.last.add(value)
        if count % 10 == 0:
            self.last.update(list(self.last.get())[-3:])
        self.seen.put(value % 7, (self.seen.get(value % 7) or 0) + 1)
        yield value % KEYS, count, sum(self.last.get()), sum(self.seen.values())


def job(directory: Path, **settings: str) -> Any:
    chosen = {
        "rekindle.progress": "off",
        "execution.checkpointing.dir": str(directory),
        "state.backend.type": "rocksdb",
        "taskmanager.memory.managed.size": "16mb",
        **settings,
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(chosen))
    env.set_parallelism(2).enable_checkpointing(150)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 20))
    source = DataGeneratorSource(lambda number: number, NUMBERS, RateLimiterStrategy.per_second(6_000))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int)
    keyed = numbers.key_by(lambda number: number % KEYS, Types.LONG())
    return keyed.process(Everything(), Types.TUPLE([Types.LONG()] * 4)).uid("everything")


def expected() -> list[tuple[int, int, int, int]]:
    found = []
    for key in range(KEYS):
        last: list[int] = []
        for count, value in enumerate(range(key, NUMBERS, KEYS), 1):
            last.append(value)
            if count % 10 == 0:
                last = last[-3:]
            found.append((key, count, sum(last), count))
    return sorted(found)


def test_a_killed_slot_loses_nothing_and_leaves_no_files(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(spark.sparkContext.environment, CRASH_AT, "after-snapshot:3@slot1")
    monkeypatch.setitem(spark.sparkContext.environment, CRASH_ONCE, str(tmp_path / "crashed"))
    local = tmp_path / "local"
    local.mkdir()
    stream = job(tmp_path / "checkpoints", **{"state.backend.rocksdb.localdir": str(local)})
    with stream.execute_and_collect() as rows:
        assert sorted(rows) == expected()
    assert (tmp_path / "crashed").exists(), "no slot died"
    wait_until(lambda: not list(local.iterdir()), "the guardians to remove the files", 30)


def test_a_missing_package_is_one_sentence_before_the_job_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rekindle.graph.settings.find_spec", lambda name: None)
    stream = job(tmp_path)
    with pytest.raises(ConfigurationError, match=r"pip install 'rekindle\[rocksdb\]'"):
        stream.execute_and_collect()
