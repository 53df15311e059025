"""Local recovery: a slot that starts again on its host reads nothing from the store, and its copies stay few."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rekindle.checkpoint.store.copied_store import CopiedStore, copy_name
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.common import Types, WatermarkStrategy
from rekindle.coordinator.job_lifelines import JobLifelines
from rekindle.datastream import KeyedProcessFunction, RuntimeContext
from rekindle.datastream.connectors.datagen import DataGeneratorSource
from rekindle.datastream.state import MapStateDescriptor, ValueStateDescriptor
from rekindle.runtime.copies_keeper import keep_until_job_ends
from rekindle.runtime.directories import remove_abandoned, share_directory
from rekindle.runtime.local_copies import LocalCopies
from rekindle.testing import InProcessJob
from rekindle.wire import connect_tcp
from tests.support.environments import checkpointed

KEYS, RECORDS_EACH = 60, 40
FILE = "orders/t/shared/1-1-op-0.state"


class CountedStore(MemoryStore):
    """Counts the reads of state files."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        self.reads += copy_name(path) is not None
        return super().read(path, offset, length)


class Remember(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.text = runtime_context.get_state(ValueStateDescriptor("text", Types.STRING()))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        before = self.text.value()
        self.text.update(f"{value:060d}")
        self.seen.put(value % 5, value)
        ctx.timer_service().register_event_time_timer(10**12 + value)
        yield f"{value} {before} {sorted(self.seen.items())}"


class Recovering:
    """A job whose checkpoints are copied to a folder."""

    def __init__(self, folder: Path, backend: str) -> None:
        self.store = CountedStore()
        self.copies = LocalCopies(folder)
        self._backend = backend
        self.running = self.job()
        self.running._lineage.store = self.copies.of(self.store)

    def job(self, restore: Any = None) -> InProcessJob:
        settings: dict[str, Any] = {"state.backend.type": self._backend}
        env = checkpointed(2, **settings)
        source = DataGeneratorSource(lambda n: n * 7919, 10**9)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int)
        stream = numbers.key_by(lambda n: n % KEYS, int).process(Remember(), Types.STRING())
        return InProcessJob.of(stream, max_records=RECORDS_EACH, restore=restore)

    def checkpoint(self) -> Any:
        """A completed checkpoint, of which the copies know, as in a slot."""
        taken = self.running.checkpoint(complete=False)
        assert taken.manifest
        for operator in (operator for snapshot in taken.snapshots for operator in snapshot.operators):
            self.copies.written(taken.id, operator.uid, operator.subtask, operator.files)
        self.running.complete(taken)
        self.copies.completed(taken.id)
        return taken

    def restart(self, checkpoint: Any, local: bool = True) -> int:
        """Kill the job and restore it; the number of reads of the store."""
        self.running.kill()
        before = self.store.reads
        checkpoint.lineage.store = self.copies.of(self.store) if local else self.store
        self.running = self.job(checkpoint)
        return self.store.reads - before


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_slot_that_returns_to_its_host_reads_nothing_from_the_store(tmp_path: Path, backend: str) -> None:
    job, undisturbed = Recovering(tmp_path, backend), Recovering(tmp_path / "none", backend)
    for _ in range(3):
        checkpoint = job.checkpoint()
        undisturbed.running.epoch()
    assert job.restart(checkpoint, local=False) > 0
    assert job.restart(checkpoint) == 0
    for _ in range(3):
        assert job.running.epoch() == undisturbed.running.epoch()
    job.running.kill()
    undisturbed.running.kill()


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_only_what_the_last_completed_checkpoint_needs_is_kept(tmp_path: Path, backend: str) -> None:
    job = Recovering(tmp_path, backend)
    for number in range(1, 60):
        checkpoint = job.checkpoint()
        if number % 7 == 0:
            aborted = job.running.checkpoint(complete=False)
            assert aborted.manifest
            job.running.abort(aborted)
            job.copies.aborted(aborted.id)
        if number % 20 == 0:
            assert job.restart(checkpoint) == 0
        copies = {file.name for file in tmp_path.iterdir()}
        assert copies == {copy_name(path) for path in checkpoint.manifest.files()}
    job.running.kill()


def copied(folder: Path) -> tuple[CountedStore, Path]:
    """A store with a file, and the file's copy."""
    store = CountedStore()
    CopiedStore(store, folder).put(FILE, iter([b"hello ", b"world"]))
    return store, folder / "1-1-op-0.state"


@pytest.mark.parametrize("damage", ["a byte", "truncated", "empty", "gone", "a folder"])
def test_a_damaged_or_missing_copy_is_read_from_the_store(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    store, copy = copied(tmp_path)
    data = copy.read_bytes()
    copy.unlink()
    if damage == "a folder":
        copy.mkdir()
    elif damage != "gone":
        copy.write_bytes({"a byte": b"H" + data[1:], "truncated": data[:-5], "empty": b""}[damage])
    reading = CopiedStore(store, tmp_path)
    assert (reading.read(FILE, 6, 5), reading.read(FILE), store.reads) == (b"world", b"hello world", 2)
    assert reading.from_store == {copy.name}
    if damage in ("a byte", "truncated", "empty"):
        assert f"The local copy {copy} is damaged" in caplog.text


def test_a_copy_is_read_like_the_file(tmp_path: Path) -> None:
    store, _ = copied(tmp_path)
    reading = CopiedStore(store, tmp_path)
    asked: list[tuple[int, int | None]] = [(0, None), (6, None), (6, 3), (6, 100), (11, 5), (50, 5), (0, 0)]
    assert [reading.read(FILE, *each) for each in asked] == [MemoryStore.read(store, FILE, *each) for each in asked]
    assert store.reads == 0


def test_a_copy_that_cannot_be_written_does_not_fail_the_checkpoint(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        store = MemoryStore()
        CopiedStore(store, tmp_path).put(FILE, iter([b"x" * 800, b"y" * 800]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    CopiedStore(store, tmp_path / "no folder").put(FILE, b"x" * 800)
    assert len(store.read(FILE)) == 800
    assert list(tmp_path.iterdir()) == []
    assert caplog.text.count("No local copy of") == 2


def test_a_file_that_the_store_refuses_leaves_no_copy(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"x"
        raise OSError("the store is gone")

    with pytest.raises(OSError, match="gone"):
        CopiedStore(MemoryStore(), tmp_path).put(FILE, broken())
    assert list(tmp_path.iterdir()) == []


# -- the folder's life -------------------------------------------------------------------------------------------------


def test_one_keeper_waits_for_the_end_of_the_job_and_removes_the_folder(tmp_path: Path) -> None:
    lifelines = JobLifelines("127.0.0.1", None)
    shared = share_directory("copies-", "job", str(tmp_path))
    shared.release_lock()  # the slot has ended
    place = lifelines.place((shared.path,), 3)
    jobs = [connect_tcp("127.0.0.1", place.port, place.secret, None) for _ in range(2)]
    ended: list[int] = []
    locked = threading.Event()

    def keep(number: int) -> None:
        keep_until_job_ends(place.folder, jobs[number])
        ended.append(number)
        locked.set()

    keepers = [threading.Thread(target=keep, args=(number,), daemon=True) for number in range(2)]
    for keeper in keepers:
        keeper.start()
    assert locked.wait(60)  # the other one keeps the folder: this one has nothing to do
    remove_abandoned("copies-", str(tmp_path))
    assert Path(shared.path).exists()
    assert len(ended) == 1
    lifelines.close()
    for keeper in keepers:
        keeper.join(60)
    assert (len(ended), list(tmp_path.iterdir())) == (2, [])


def test_a_folder_that_nobody_uses_is_removed_by_the_next_slot(tmp_path: Path) -> None:
    first, second = (share_directory("copies-", "a", str(tmp_path)) for _ in range(2))
    assert first.path == second.path
    first.release_lock()
    other = share_directory("copies-", "b", str(tmp_path))
    assert len(list(tmp_path.iterdir())) == 2
    second.release_lock()
    remove_abandoned("copies-", str(tmp_path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["copies-b"]
    other.release_lock()


def test_a_guardian_that_comes_after_the_end_of_the_job_is_let_go() -> None:
    lifelines = JobLifelines("127.0.0.1", None)
    place = lifelines.place((), 0)
    assert place.folder == ""
    lifelines.close()
    with pytest.raises(OSError, match="refused"):
        connect_tcp("127.0.0.1", place.port, place.secret, None)
