"""Jobs on Spark with state in RocksDB: they survive killed slots, restore from local copies, leave nothing on disk."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rekindle.checkpoint.checkpoint_listing import StoredManifests
from rekindle.checkpoint.paths import StateFileName
from rekindle.checkpoint.store.open_store import open_store
from rekindle.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from rekindle.crash_points import CRASH_FILE
from rekindle.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from rekindle.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rekindle.errors import ConfigurationError
from tests.support.waiting import wait_until

KEYS, NUMBERS = 300, 12_000
#: Names a file; the slot that finds it is killed in a compaction.
COMPACTION_FILE = "REKINDLE_TEST_COMPACTION"


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
        if COMPACTION_FILE in os.environ:
            die_in_a_compaction(os.environ[COMPACTION_FILE], self.last._rows.database)  # type: ignore[attr-defined]
        yield value % KEYS, count, sum(self.last.get()), sum(self.seen.values())


def die_in_a_compaction(order: str, database: Any) -> None:
    """Take the order, if there is one, and kill this process while RocksDB compacts."""
    with suppress(FileNotFoundError):
        os.rename(order, f"{order}.taken")
        raw = database._database
        while True:
            database.ingest((b"%08d" % number, os.urandom(500)) for number in range(20_000))
            compaction = threading.Thread(target=raw.compact_range, args=(None, None))
            compaction.start()
            while compaction.is_alive():
                if raw.property_int_value("rocksdb.num-running-compactions"):
                    os.kill(os.getpid(), signal.SIGKILL)


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
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(6, 20))
    source = DataGeneratorSource(lambda number: number, NUMBERS, RateLimiterStrategy.per_second(2_000))
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


class Blows(threading.Thread):
    """Has slots killed in the first upload, then in a compaction, then in the restore after that."""

    def __init__(self, folder: Path) -> None:
        super().__init__(name="blows", daemon=True)
        self.crash, self.compaction, self._checkpoints = folder / "crash", folder / "compaction", folder / "checkpoints"
        self.struck = 0
        self._order(self.crash, "after-group@slot0")

    def _order(self, file: Path, order: str) -> None:
        file.with_suffix(".new").write_text(order)
        file.with_suffix(".new").rename(file)

    def _await(self, file: Path) -> None:
        wait_until(lambda: not file.exists(), f"a slot that takes the order in {file}", 120)
        self.struck += 1

    def _have_files(self) -> bool:
        """Whether a checkpoint is complete whose state is in files: a little state would be in the manifest."""
        manifests = StoredManifests.of(open_store(str(self._checkpoints))).manifests.values()
        written = [[StateFileName.parse(name) for name in manifest.files()] for manifest in manifests]
        return any({name.subtask for name in names if name is not None} == {0, 1} for names in written)

    def run(self) -> None:
        self._await(self.crash)
        wait_until(self._have_files, "a completed checkpoint with a state file of each slot", 120)
        self._order(self.crash, "after-part@slot1")
        self._order(self.compaction, "")
        self._await(self.compaction)
        self._await(self.crash)


def is_empty(directory: Path) -> bool:
    return not list(directory.iterdir())


def test_slots_killed_at_bad_moments_lose_nothing_restore_from_local_copies_and_leave_no_files(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    blows = Blows(tmp_path)
    monkeypatch.setitem(spark.sparkContext.environment, CRASH_FILE, str(blows.crash))
    monkeypatch.setitem(spark.sparkContext.environment, COMPACTION_FILE, str(blows.compaction))
    local = {
        "state.backend.rocksdb.localdir": tmp_path / "db",
        "taskmanager.state.local.root-dirs": tmp_path / "copies",
    }
    for directory in local.values():
        directory.mkdir()
    settings = {key: str(directory) for key, directory in local.items()} | {"state.backend.local-recovery": "true"}
    blows.start()
    with caplog.at_level(logging.INFO), job(tmp_path / "checkpoints", **settings).execute_and_collect() as rows:
        assert sorted(rows) == expected()
    assert blows.struck == 3, "too few slots died"
    restored = re.findall(r"restored from local copies: (\d+), from the store: (\d+)", caplog.text)
    assert [int(copies) > 0 and store == "0" for copies, store in restored[-2:]] == [True, True], restored
    for directory in local.values():
        wait_until(partial(is_empty, directory), "the guardians to remove the files", 30)


def test_a_missing_package_is_one_sentence_before_the_job_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rekindle.graph.settings.find_spec", lambda name: None)
    stream = job(tmp_path)
    with pytest.raises(ConfigurationError, match=r"pip install 'rekindle\[rocksdb\]'"):
        stream.execute_and_collect()
