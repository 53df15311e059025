"""Bad days of state on disk: a full disk, a folder that is gone, damaged files, stalled writes.

Each is made for real. The job fails, or its checkpoint does, with one sentence; it goes back to its last checkpoint and
loses nothing; nothing is left on the disk.
"""

from __future__ import annotations

import random
import re
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rekindle.checkpoint.store.local import LocalStore
from rekindle.clock import SystemClock
from rekindle.common import Configuration, Types, WatermarkStrategy
from rekindle.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rekindle.datastream.connectors.datagen import DataGeneratorSource
from rekindle.datastream.state import ValueStateDescriptor
from rekindle.errors import StateBackendError
from rekindle.protocol import CheckpointAcknowledged, CheckpointDeclined, Message, Storage
from rekindle.runtime.operators.keyed import KeyedOperator
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.snapshot_upload import Uploader
from rekindle.runtime.state.rocksdb.memory_shares import MemoryShares
from rekindle.runtime.state.rocksdb.rocks_backend import RocksKeyedBackend
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase
from rekindle.testing import InProcessJob
from tests.support.waiting import wait_until

KEYS, RECORDS_EACH, VALUE_BYTES = 1600, 400, 1500
MOST_EPOCHS = 60
SENTENCE = r"The RocksDB of this slot in .* cannot be (written|read): .*state\.backend\.rocksdb\.localdir"


def text_of(number: int) -> str:
    return random.Random(number).randbytes(VALUE_BYTES // 2).hex()


class Replace(KeyedProcessFunction):
    """Keeps a large text per key, and reports how the last one began."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.text = runtime_context.get_state(ValueStateDescriptor("text", Types.STRING()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        before = self.text.value() or ""
        self.text.update(text_of(value))
        yield f"{value} {before[:20]}"


def job(restore: Any = None) -> InProcessJob:
    settings = {"state.backend.type": "rocksdb", "taskmanager.memory.managed.size": "8mb"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(1).set_max_parallelism(4).enable_checkpointing(60_000)
    numbers = env.from_source(
        DataGeneratorSource(lambda n: n * 7919, 10**9), WatermarkStrategy.no_watermarks(), "numbers", int
    )
    stream = numbers.key_by(lambda n: n % KEYS, int).process(Replace(), Types.STRING())
    running = InProcessJob.of(stream, max_records=RECORDS_EACH, restore=restore)
    keep_few_rows(keyed_of(running))
    return running


def keep_few_rows(keyed: RocksKeyedBackend) -> None:
    """Let every row go to the database soon."""
    keyed._cache._most_bytes, keyed._cache.least_rows = 0, 8
    keyed._cache.note_sizes([b""], 1)


def keyed_of(running: InProcessJob) -> RocksKeyedBackend:
    operators = [operator for task in running.tasks.values() for operator in task._operators.values()]
    (found,) = [operator.keyed for operator in operators if isinstance(operator, KeyedOperator)]
    assert isinstance(found, RocksKeyedBackend)
    return found


@contextmanager
def full_disk(most_bytes: int) -> Iterator[None]:
    """No file of this process may grow beyond so many bytes: the kernel refuses, as on a full disk, without root."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def causes(error: BaseException) -> str:
    """The messages of an error and of its causes."""
    return str(error) + (" " + causes(error.__cause__) if error.__cause__ is not None else "")


def begun() -> tuple[InProcessJob, Any]:
    """A job after two epochs, and its checkpoint."""
    running = job()
    running.epoch()
    checkpoint = running.checkpoint()
    assert checkpoint.manifest.full_bytes() > RECORDS_EACH * VALUE_BYTES
    return running, checkpoint


def failure_of(running: InProcessJob) -> str:
    """Run until the job fails; its files are gone. Returns the messages."""
    with pytest.raises((OperatorFailure, StateBackendError)) as failed:
        run_epochs(running)
    end(running)
    return causes(failed.value)


def run_epochs(running: InProcessJob) -> None:
    for _ in range(MOST_EPOCHS):
        running.epoch()


def end(running: InProcessJob) -> None:
    folder = Path(running._directory.name)
    running.kill()
    assert not folder.exists()


def assert_nothing_lost(checkpoint: Any, epochs: int = 2) -> None:
    """The successor of a failed job gives what a job without failures gives."""
    undisturbed, restored = job(), job(checkpoint)
    for _ in range(epochs):
        undisturbed.epoch()
    for _ in range(KEYS // RECORDS_EACH + 1):
        assert restored.epoch() == undisturbed.epoch()
    end(undisturbed)
    end(restored)


# -- a full disk -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most_bytes", "log_bytes", "sentence"),
    [
        pytest.param(100_000, 1 << 30, SENTENCE, id="flush"),
        pytest.param(1_500_000, 1 << 30, SENTENCE, id="compaction"),
        pytest.param(100_000, 0, r"Changes of state cannot be written to .*localdir", id="delta log"),
    ],
)
def test_a_full_disk_while_state_is_written_fails_the_task(most_bytes: int, log_bytes: int, sentence: str) -> None:
    running, checkpoint = begun()
    keyed_of(running).log._most_bytes = log_bytes
    with full_disk(most_bytes):
        assert re.search(sentence, failure_of(running))
    assert_nothing_lost(checkpoint)


def test_a_full_disk_while_state_is_restored_fails_the_task() -> None:
    running, checkpoint = begun()
    end(running)
    with full_disk(50_000), pytest.raises(Exception, match="cannot be written") as failed:
        job(checkpoint)
    assert isinstance(failed.value, StateBackendError)
    assert_nothing_lost(checkpoint)


class Answers:
    """The answers of an uploader to the driver."""

    def __init__(self, folder: Path) -> None:
        self.received: list[Message] = []
        self._came = threading.Event()
        self.uploader = Uploader(Storage(LocalStore(folder).url, "root", 0), 1, self._take, {}, SystemClock())

    def _take(self, message: Message) -> None:
        self.received.append(message)
        self._came.set()

    def upload(self, checkpoint: Any) -> list[Message]:
        """The answers for a checkpoint's snapshots."""
        self.received.clear()
        for snapshot in checkpoint.snapshots:
            self.uploader.put(snapshot, 0.0, 0.0)
        wait_until(lambda: len(self.received) == len(checkpoint.snapshots), "the answers", 60)
        return self.received


def test_a_full_disk_while_a_checkpoint_is_written_declines_it_and_leaves_no_file(tmp_path: Path) -> None:
    running, _ = begun()
    answers = Answers(tmp_path)
    refused = running.checkpoint(savepoint=True, complete=False)
    with full_disk(50_000):
        declined = [each for each in answers.upload(refused) if isinstance(each, CheckpointDeclined)]
    assert [each.asynchronous for each in declined] == [True]
    assert re.search(r"Cannot write .*: file too large\. Free space there, or name another dir", declined[0].message)
    assert not list(tmp_path.rglob("*.state*"))
    running.abort(refused)
    checkpoint = running.checkpoint()  # nothing of the failed one is missing
    again = running.checkpoint(savepoint=True, complete=False)
    assert all(isinstance(each, CheckpointAcknowledged) for each in answers.upload(again))
    answers.uploader.close(10)
    end(running)
    assert_nothing_lost(checkpoint, 4)


def test_snapshots_of_an_aborted_checkpoint_do_not_wait_behind_a_slow_store(tmp_path: Path) -> None:
    running, _ = begun()
    answers = Answers(tmp_path)
    held, entered = threading.Event(), threading.Event()

    def slow(message: Message) -> None:
        entered.set()
        held.wait()
        answers.received.append(message)

    answers.uploader._send = slow
    first, second = (running.checkpoint(savepoint=True, complete=False) for _ in range(2))
    answers.uploader.put(first.snapshots[0], 0.0, 0.0)
    entered.wait()
    answers.uploader.put(second.snapshots[0], 0.0, 0.0)
    answers.uploader.aborted(second.id)
    assert all(operator.used for operator in second.snapshots[0].operators)
    held.set()
    answers.uploader.close(60)
    assert [message.checkpoint for message in answers.received] == [first.id]  # type: ignore[attr-defined]
    end(running)


# -- a folder that is gone, damaged files ------------------------------------------------------------------------------


def test_a_removed_folder_fails_the_task_with_a_sentence() -> None:
    running, checkpoint = begun()
    keyed_of(running).log._most_bytes = 1 << 30
    shutil.rmtree(keyed_of(running).database.folder)
    assert re.search(SENTENCE, failure_of(running))
    assert_nothing_lost(checkpoint)


def damage(database: ScratchDatabase) -> None:
    """Write all entries to files, and damage the middle of each."""
    database._database.flush()
    files = list((database.folder / "db").glob("*.sst"))
    assert files
    for file in files:
        with file.open("r+b") as opened:
            opened.seek(file.stat().st_size // 4)
            opened.write(b"\xff" * (file.stat().st_size // 2))


def test_a_damaged_file_that_a_read_meets_fails_the_task_with_a_sentence() -> None:
    running, checkpoint = begun()
    for _ in range(KEYS // RECORDS_EACH):
        running.epoch()  # from now on every key is in the files
    damage(keyed_of(running).database)
    assert re.search(SENTENCE, failure_of(running))
    assert_nothing_lost(checkpoint)


def test_a_damaged_file_that_a_snapshot_meets_fails_the_checkpoint(tmp_path: Path) -> None:
    running, checkpoint = begun()
    answers = Answers(tmp_path)
    keyed_of(running).database._database.flush()
    damaged = running.checkpoint(savepoint=True, complete=False)
    damage(keyed_of(running).database)
    answered = answers.upload(damaged)
    (declined,) = [each for each in answered if isinstance(each, CheckpointDeclined)]
    assert re.search(SENTENCE, declined.message)
    assert not list(tmp_path.rglob("*.state*"))
    answers.uploader.close(10)
    end(running)
    assert_nothing_lost(checkpoint)


# -- a stalled write ---------------------------------------------------------------------------------------------------


STALLED = """
import sys, threading
from pathlib import Path
from rekindle.runtime.state.rocksdb.memory_shares import MemoryShares
from rekindle.runtime.state.rocksdb.scratch_database import ScratchDatabase

database = ScratchDatabase(Path(sys.argv[1]), MemoryShares.of(8 << 20))
raw = database._database
raw.set_options({"level0_file_num_compaction_trigger": "1000"})
for number in range(3):
    database.write([(b"%d" % number, b"x")])
    raw.flush()
raw.set_options({"level0_slowdown_writes_trigger": "1", "level0_stop_writes_trigger": "2"})
print("stopped:", raw.property_int_value("rocksdb.is-write-stopped"), flush=True)
written = threading.Event()
threading.Thread(target=lambda: (database.write([(b"a", b"b")]), written.set()), daemon=True).start()
for _ in range(50):
    print("written" if written.wait(0.02) else "heartbeat", flush=True)
raw.set_options({"level0_slowdown_writes_trigger": "1000", "level0_stop_writes_trigger": "1000"})
written.wait()
print(database.get(b"a"))
database.close()
"""


def test_a_stalled_write_lets_heartbeats_through_and_goes_on(tmp_path: Path) -> None:
    """RocksDB refuses writes while it has many files; a write that waited inside it would stop all threads.

    In a process of its own: without the pause in Python it would stand still for ever.
    """
    done = subprocess.run(
        [sys.executable, "-c", STALLED, str(tmp_path)], capture_output=True, text=True, timeout=240, check=True
    )
    assert done.stdout.splitlines() == ["stopped: 1", *["heartbeat"] * 50, "b'b'"]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_whose_name_has_a_stall_in_it_does_not_look_like_a_stalled_write(tmp_path: Path) -> None:
    database = ScratchDatabase(tmp_path / "installed", MemoryShares.of(8 << 20))
    shutil.rmtree(database.folder)
    with pytest.raises(StateBackendError, match="installed"):
        write_much(database)
    database.close()


def write_much(database: ScratchDatabase) -> None:
    for number in range(10_000):
        database.write([(b"%d" % number, b"x" * 1000)])
