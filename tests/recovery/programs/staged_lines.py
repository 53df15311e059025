"""Sinks of lines for the crash matrix: two that commit with the checkpoints, and two that do so incompletely."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rekindle.common import Encoder, Types
from rekindle.datastream import CheckpointedFunction, CheckpointListener, RuntimeContext, SinkFunction
from rekindle.datastream.connectors.file_system import BucketAssigner, FileSink, OutputFileConfig
from rekindle.datastream.state import ListState, ListStateDescriptor


def file_sink(directory: str) -> FileSink:
    """Rekindle's own file sink."""
    return (
        FileSink.for_row_format(directory, Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_output_file_config(OutputFileConfig.builder().with_part_prefix("committed").build())
        .build()
    )


class StagedLines(SinkFunction, CheckpointedFunction, CheckpointListener):
    """Two phases by hand: lines are staged at the barrier, and get their final name when the checkpoint is complete.

    Operator list state holds the staged files until they are committed; a restore commits them again (I18).
    """

    commits_again = True

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        self.state: ListState[str] = store.get_list_state(ListStateDescriptor("staged", Types.STRING()))
        for name in self.state.get():
            if self.commits_again:
                self.commit(name)
        self.staged: dict[int, list[str]] = {}
        self.lines: list[str] = []

    def invoke(self, value: Any, context: Any) -> None:
        self.lines.append(f"{value}\n")

    def new_name(self) -> str:
        return uuid.uuid4().hex

    def snapshot_state(self, context: Any) -> None:
        name = self.new_name()
        Path(self.directory, f".staged-{name}").write_text("".join(self.lines))
        self.lines = []
        self.staged.setdefault(context.get_checkpoint_id(), []).append(name)
        self.state.update([name for names in self.staged.values() for name in names])

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        for covered in [each for each in self.staged if each <= checkpoint_id]:
            for name in self.staged.pop(covered):
                self.commit(name)

    def commit(self, name: str) -> None:
        with contextlib.suppress(FileExistsError):  # idempotent
            os.link(Path(self.directory, f".staged-{name}"), Path(self.directory, f"committed-{name}"))


class Fenced(StagedLines):
    """Like a broker with transactions: a restored subtask commits the transactions in its state, and aborts its other
    open ones. Like a careless broker: a commit of an aborted transaction is no error, and does nothing.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()
        for path in Path(self.directory).glob(f".staged-{self.subtask}-*"):
            path.unlink()

    def new_name(self) -> str:
        return f"{self.subtask}-{super().new_name()}"

    def commit(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            super().commit(name)


class Forgetful(StagedLines):
    """Commits nothing again after a restore."""

    commits_again = False


class Direct(SinkFunction):
    """Writes every line at once, without waiting for the checkpoint."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def open(self, runtime_context: RuntimeContext) -> None:
        self.file = open(Path(self.directory, f"committed-{uuid.uuid4().hex}"), "a")

    def invoke(self, value: Any, context: Any) -> None:
        self.file.write(f"{value}\n")
        self.file.flush()


def committed(directory: str | Path) -> list[tuple[int, int]]:
    """The visible lines, in order, each as often as it was committed."""
    return sorted(_lines(Path(directory)))


def _lines(directory: Path) -> Iterator[tuple[int, int]]:
    for path in directory.glob("committed-*"):
        for line in path.read_text().splitlines():
            key, count = line.split()
            yield int(key), int(count)
