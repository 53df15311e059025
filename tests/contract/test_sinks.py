"""Sinks of several designs keep the contract of two-phase sinks (I18)."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path

import pytest

from rekindle.datastream import TwoPhaseCommitSinkFunction
from rekindle.datastream.connectors import (
    CommitRequest,
    CommittableFile,
    Committer,
    CommitterInitContext,
    CommittingSinkWriter,
    Sink,
    SinkWriter,
    StatefulSinkWriter,
    SupportsCommitter,
    SupportsWriterState,
    WriterInitContext,
)
from rekindle.testing.sink_contract import SinkContract, SinkUnderTest


def read(folder: Path) -> list[int]:
    return [record for path in sorted(folder.glob("*.json")) for record in json.loads(path.read_text())]


# -- names in a shared place as committables ---------------------------------------------------------------------------


class Renaming(Sink[int], SupportsCommitter[str]):
    """Stages `name.open` beside the output; the commit renames it. Files that earlier attempts left are swept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create_writer(self, context: WriterInitContext) -> SinkWriter[int]:
        return RenamingWriter(self._folder, context)

    def create_committer(self, context: CommitterInitContext) -> Committer[str]:
        return RenamingCommitter(self._folder, context)


class RenamingWriter(CommittingSinkWriter[int, str]):
    def __init__(self, folder: Path, context: WriterInitContext) -> None:
        self._folder = folder
        self._prefix = context.staging_prefix()
        self._records: list[int] = []
        self._number = 0

    def write(self, element: int, context: SinkWriter.Context) -> None:
        self._records.append(element)

    def flush(self, end_of_input: bool) -> None:
        if self._records:
            self._number += 1
            staged = self._folder / f"{self._prefix}-{self._number}.open"
            staged.write_text(json.dumps(self._records))
            self._records = []

    def prepare_commit(self) -> list[str]:
        mine = sorted(self._folder.glob(f"{self._prefix}-*.open"))
        fresh = [path for path in mine if int(path.stem.rpartition("-")[2]) == self._number]
        return [path.name for path in fresh]


class RenamingCommitter(Committer[str]):
    def __init__(self, folder: Path, context: CommitterInitContext) -> None:
        self._folder = folder
        self._context = context

    def commit(self, requests: list[CommitRequest[str]]) -> None:
        for request in requests:
            staged = self._folder / request.get_committable()
            if staged.exists():
                staged.rename(staged.with_suffix(".json"))
            else:
                assert staged.with_suffix(".json").exists()
                request.signal_already_committed()

    def sweep(self) -> None:
        for staged in self._folder.glob(f"{self._context.timeline}-*.open"):
            if int(staged.name.removeprefix(self._context.timeline).split("-")[1]) < self._context.attempt:
                staged.unlink()


class TestRenaming(SinkContract):
    @pytest.fixture
    def sink(self, tmp_path: Path) -> SinkUnderTest:
        return SinkUnderTest(lambda: Renaming(tmp_path), lambda: read(tmp_path))

    def test_what_lost_attempts_have_staged_is_swept(self, sink: SinkUnderTest, tmp_path: Path) -> None:
        """I18: within the timeline, after everything that the checkpoint holds was committed."""
        job = self._job(sink)
        first = job.checkpoint()
        job.epoch()
        job.checkpoint(complete=False)
        self._die(job, first)
        assert list(tmp_path.glob("*.open"))
        self._job(sink, 3, first).run()
        assert list(tmp_path.glob("*.open")) == []


# -- files inside the checkpoint as committables -----------------------------------------------------------------------


class Copying(Sink[int], SupportsCommitter[CommittableFile]):
    """Writes into the slot's private directory; the file itself is the committable, and copying it the commit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create_writer(self, context: WriterInitContext) -> SinkWriter[int]:
        return CopyingWriter(context)

    def create_committer(self, context: CommitterInitContext) -> Committer[CommittableFile]:
        return CopyingCommitter(self._folder)


class CopyingWriter(CommittingSinkWriter[int, CommittableFile]):
    def __init__(self, context: WriterInitContext) -> None:
        self._context = context
        self._records: list[int] = []
        self._number = 0

    def write(self, element: int, context: SinkWriter.Context) -> None:
        self._records.append(element)

    def flush(self, end_of_input: bool) -> None: ...

    def prepare_commit(self) -> list[CommittableFile]:
        if not self._records:
            return []
        self._number += 1
        path = Path(self._context.directory, f"{self._number}")
        path.write_text(json.dumps(self._records))
        name = f"{self._context.staging_prefix()}-{self._number}.json"
        written, self._records = len(self._records), []
        return [CommittableFile(str(path), name, {"records": written})]


class CopyingCommitter(Committer[CommittableFile]):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def commit(self, requests: list[CommitRequest[CommittableFile]]) -> None:
        for request in requests:
            file = request.get_committable()
            assert len(json.loads(Path(file.path).read_text())) == file.metadata["records"]
            shutil.copyfile(file.path, self._folder / f"{file.name}.part")
            os.replace(self._folder / f"{file.name}.part", self._folder / file.name)


class TestFilesInsideTheCheckpoint(SinkContract):
    @pytest.fixture
    def sink(self, tmp_path: Path) -> SinkUnderTest:
        return SinkUnderTest(lambda: Copying(tmp_path), lambda: read(tmp_path))


# -- a writer that keeps an open file in its state ---------------------------------------------------------------------


class Growing(Copying, SupportsWriterState[int, list[int]]):
    """Hands over full files of two records; the rest is the writer's state, which a restore deals out."""

    def create_writer(self, context: WriterInitContext) -> SinkWriter[int]:
        return GrowingWriter(context, [])

    def restore_writer(self, context: WriterInitContext, recovered_state: list[list[int]]) -> GrowingWriter:
        assert recovered_state
        return GrowingWriter(context, [record for records in recovered_state for record in records])


class GrowingWriter(CopyingWriter, StatefulSinkWriter[int, list[int]]):
    def __init__(self, context: WriterInitContext, records: list[int]) -> None:
        super().__init__(context)
        self._open = records
        self._ended = False

    def write(self, element: int, context: SinkWriter.Context) -> None:
        self._open.append(element)

    def flush(self, end_of_input: bool) -> None:
        self._ended = end_of_input

    def prepare_commit(self) -> list[CommittableFile]:
        full = len(self._open) if self._ended else len(self._open) // 2 * 2
        self._records, self._open = self._open[:full], self._open[full:]
        return super().prepare_commit()

    def snapshot_state(self, checkpoint_id: int) -> list[list[int]]:
        return [self._open] if self._open else []


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_the_state_of_writers_goes_on_at_any_parallelism(tmp_path: Path, parallelism: int) -> None:
    sink = SinkUnderTest(lambda: Growing(tmp_path), lambda: read(tmp_path))
    contract = SinkContract()
    job = contract._job(sink)
    job.epoch()
    checkpoint = job.checkpoint(complete=False)
    contract._die(job, checkpoint)
    restored = contract._job(sink, parallelism, checkpoint)
    assert len(read(tmp_path)) == 4  # of three records each, both subtasks handed two over
    restored.run()
    assert sorted(read(tmp_path)) == list(range(24))


# -- TwoPhaseCommitSinkFunction ----------------------------------------------------------------------------------------


class Transactions(TwoPhaseCommitSinkFunction[str]):
    """A transaction is the name of a file."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def begin_transaction(self) -> str:
        name = uuid.uuid4().hex
        self._records: list[int] = []
        return name

    def invoke(self, transaction: str, value: int, context: object) -> None:  # type: ignore[override]
        self._records.append(value)

    def pre_commit(self, transaction: str) -> None:
        (self._folder / f"{transaction}.open").write_text(json.dumps(self._records))

    def commit(self, transaction: str) -> None:
        if (self._folder / f"{transaction}.open").exists():
            (self._folder / f"{transaction}.open").rename(self._folder / f"{transaction}.json")

    def abort(self, transaction: str) -> None:
        (self._folder / f"{transaction}.open").unlink(missing_ok=True)


class TestTwoPhaseCommitSinkFunction(SinkContract):
    @pytest.fixture
    def sink(self, tmp_path: Path) -> SinkUnderTest:
        return SinkUnderTest(lambda: Transactions(tmp_path), lambda: read(tmp_path))


# -- sinks that break the contract -------------------------------------------------------------------------------------


class Eager(Sink[int]):
    """Makes records visible as they come, without a commit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create_writer(self, context: WriterInitContext) -> SinkWriter[int]:
        return EagerWriter(self._folder)


class EagerWriter(SinkWriter[int]):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, element: int, context: SinkWriter.Context) -> None:
        (self._folder / f"{uuid.uuid4().hex}.json").write_text(json.dumps([element]))

    def flush(self, end_of_input: bool) -> None: ...


class Appending(Renaming):
    """Its commit is not idempotent: it copies under a new name."""

    def create_committer(self, context: CommitterInitContext) -> Committer[str]:
        return AppendingCommitter(self._folder, context)


class AppendingCommitter(RenamingCommitter):
    def commit(self, requests: list[CommitRequest[str]]) -> None:
        for request in requests:
            shutil.copyfile(self._folder / request.get_committable(), self._folder / f"{uuid.uuid4().hex}.json")


@pytest.mark.parametrize(
    ("broken", "test", "arguments"),
    [
        (Eager, "test_nothing_is_visible_before_its_checkpoint_is_complete", []),
        (Eager, "test_what_was_staged_by_a_lost_attempt_never_becomes_visible", [2]),
        (Appending, "test_committing_twice_is_committing_once", [2]),
    ],
)
def test_the_contract_finds_what_is_broken(
    tmp_path: Path, broken: type[Renaming], test: str, arguments: list[int]
) -> None:
    sink = SinkUnderTest(lambda: broken(tmp_path), lambda: read(tmp_path))
    with pytest.raises(AssertionError):
        getattr(SinkContract(), test)(sink, *arguments)
