"""Files as committables: a checkpoint holds their content, and a restore gives them back as local files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rekindle.checkpoint.manifest import FileRef
from rekindle.checkpoint.parts import write_subtask
from rekindle.checkpoint.statefile import InlineWriter
from rekindle.datastream.connectors import CommittableFile, CommitterInitContext
from rekindle.errors import CheckpointError, CorruptCheckpointError
from rekindle.runtime.operators.output import OperatorFailure
from tests.unit.runtime.operators.sink_samples import Sinking, SinkingCommitter, Subtask


class Filing(Sinking):
    """Hands over files; commits by reading them."""

    contents: list[bytes]

    def __init__(self, folder: Path, content: bytes = b"some bytes", **settings: Any) -> None:
        super().__init__(**settings)
        self.folder, self.content, self.contents, self.number = folder, content, [], 0
        self.hand_over = self._file

    def _file(self, records: list[Any]) -> CommittableFile:
        self.number += 1
        path = self.folder / f"staged-{self.number}"
        path.write_bytes(self.content)
        return CommittableFile(str(path), metadata={"records": records})

    def create_committer(self, context: CommitterInitContext) -> SinkingCommitter:
        return FilingCommitter(self)


class FilingCommitter(SinkingCommitter):
    def commit(self, requests: list[Any]) -> None:
        super().commit(requests)
        for request in requests:
            self.sink.contents.append(Path(request.get_committable().path).read_bytes())  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [0, 10, 20 << 20])
def test_a_files_content_is_in_the_checkpoint_and_comes_back_as_a_local_file(tmp_path: Path, size: int) -> None:
    """I18: the commit does not need the writer's machine."""
    gone, new = tmp_path / "gone", tmp_path / "new"
    gone.mkdir()
    content = os.urandom(1 << 10) * (size >> 10) if size > 10 else b"x" * size
    task = Subtask(str(gone), Filing(gone, content)).begin()
    task.write("a", "b")
    state = task.checkpoint(1)
    (gone / "staged-1").unlink()
    sink = Filing(new)
    Subtask(str(new), sink, store=task.store).begin(1, state)
    (file,) = sink.committed
    assert (file.name, file.metadata, sink.contents) == ("staged-1", {"records": ["a", "b"]}, [content])
    assert file.path.startswith(str(new))
    assert not Path(file.path).exists(), "its commit is over"


def test_a_committed_file_is_removed_when_no_snapshot_reads_it_any_more(tmp_path: Path) -> None:
    sink = Filing(tmp_path)
    task = Subtask(str(tmp_path), sink).begin()
    staged = tmp_path / "staged-1"
    task.write("a")
    first = task.barrier(1)
    task.upload(first, 1)
    savepoint = task.barrier(2)  # holds it too, and is not yet written
    task.operator.notify_complete(1)
    assert len(sink.committed) == 1
    assert staged.exists()
    state = task.upload(savepoint, 2)
    assert len(state.committables) == 1
    task.checkpoint(3)
    task.operator.notify_complete(3)
    assert not staged.exists()


def test_a_committed_file_does_not_outlive_the_task(tmp_path: Path) -> None:
    task = Subtask(str(tmp_path), Filing(tmp_path)).begin()
    task.write("a")
    task.barrier(1)
    task.barrier(2)
    task.operator.notify_complete(1)
    task.operator.close()
    assert not (tmp_path / "staged-1").exists()


def test_a_file_that_was_moved_away_fails_the_upload_with_a_sentence(tmp_path: Path) -> None:
    task = Subtask(str(tmp_path), Filing(tmp_path, b"x" * 100)).begin()
    task.write("a")
    snapshot = task.barrier(1)
    (tmp_path / "staged-1").unlink()
    with pytest.raises(CheckpointError, match=r"staged-1, which waits to be committed, is gone"):
        task.upload(snapshot, 1)


def test_a_large_file_does_not_fit_into_a_checkpoint_in_memory(tmp_path: Path) -> None:
    task = Subtask(str(tmp_path), Filing(tmp_path, b"x" * 1000)).begin()
    task.write("a")
    parts = task.barrier(1)
    with pytest.raises(CheckpointError, match=r"set execution\.checkpointing\.dir"):
        write_subtask(InlineWriter("Sink: Writer (1/2)", 500), parts)


def test_a_damaged_file_in_the_checkpoint_is_refused(tmp_path: Path) -> None:
    """I16: the file's checksum does not match."""
    task = Subtask(str(tmp_path), Filing(tmp_path, b"x" * 10_000)).begin()
    task.write("a")
    state = task.checkpoint(1)
    (blob,) = state.committables
    assert isinstance(blob, FileRef)
    path = f"t/{blob.path}"
    data = bytearray(task.store.read(path))
    data[-1] ^= 1
    task.store.put(path, bytes(data))
    sink = Filing(tmp_path)
    with pytest.raises(OperatorFailure) as failure:
        Subtask(str(tmp_path), sink, store=task.store).begin(1, state)
    assert isinstance(failure.value.__cause__, CorruptCheckpointError)
    assert sink.committed == []


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[begin : begin + size] for begin in range(0, len(data), size))


def test_a_committable_is_read_whatever_pieces_it_comes_in(tmp_path: Path) -> None:
    task = Subtask(str(tmp_path), Filing(tmp_path, b"content")).begin()
    task.write("a")
    (stored,) = (part for tag, part in task.barrier(1).tagged() if tag[0] == "committables")
    assert not isinstance(stored, bytes)
    data = b"".join(stored)
    assert len(stored) == len(data)
    for size in (1, 3, 7, len(data)):
        sink = Filing(tmp_path)
        other = Subtask(str(tmp_path), sink)
        other.operator.restore_committables([pieces(data, size)])
        other.begin(1)
        assert sink.contents == [b"content"]
