"""The exactly-once writer and its committer: rows go into a file, and the database checks them before they count."""

from __future__ import annotations

import os
from itertools import count
from typing import Any

from rekindle.datastream.connectors.interval_file import IntervalFile
from rekindle.datastream.connectors.jdbc.commit_ledger import IntervalNumber, LedgerKey
from rekindle.datastream.connectors.jdbc.database import RowValues
from rekindle.datastream.connectors.jdbc.interval_target import IntervalTarget, row_file
from rekindle.datastream.connectors.sink_api import (
    CommitRequest,
    CommittableFile,
    Committer,
    CommitterInitContext,
    CommittingSinkWriter,
    SinkWriter,
    WriterInitContext,
)


class IntervalWriter(CommittingSinkWriter[Any, CommittableFile]):
    """Keeps the rows of a checkpoint interval; the committer writes them when the checkpoint is complete."""

    def __init__(self, target: IntervalTarget, context: WriterInitContext) -> None:
        self._target = target
        self._context = context
        self._key = LedgerKey.of(context)
        self._values = target.settings.reader()
        self._values_type = target.settings.values_type()
        self._batch_size = target.settings.execution.batch_size
        self._counts = count(1)
        self._number: IntervalNumber | None = None
        self._file: IntervalFile | None = None
        self._pending: list[RowValues] = []

    def write(self, element: Any, context: SinkWriter.Context) -> None:
        """Keep a row."""
        pending = self._pending
        pending.append(self._values(element))
        if len(pending) >= self._batch_size:
            self._keep_pending()

    def _keep_pending(self) -> None:
        if self._file is None:
            self._begin()
        assert self._file is not None
        assert self._number is not None
        rows, self._pending = self._pending, []
        self._file.append(rows)
        self._target.stage(self._number, rows)

    def _begin(self) -> None:
        self._number = IntervalNumber(self._key, self._context.attempt, next(self._counts))
        path = os.path.join(self._context.directory, f"interval-{self._number.count}")
        self._file = row_file(path, self._values_type)

    def flush(self, end_of_input: bool) -> None:
        """Let the database check the rows: one that it refuses fails here, before the checkpoint counts."""
        if self._pending:
            self._keep_pending()
        if self._file is not None:
            assert self._number is not None
            self._file.flush()
            self._target.check(self._number, self._file.path)

    def prepare_commit(self) -> list[CommittableFile]:
        """End the interval; an empty one has no committable."""
        if self._file is None:
            return []
        assert self._number is not None
        self._file.finish()
        prepared = self._number.committable(self._file.path, self._file.items)
        self._file = self._number = None
        return [prepared]

    def close(self) -> None:
        """Remove an unfinished file; the committer closes the connection."""
        if self._file is not None:
            self._file.discard()


class LedgerCommitter(Committer[Any]):
    """Commits intervals in the order of their checkpoints, each with its note in the ledger."""

    def __init__(self, target: IntervalTarget, context: CommitterInitContext) -> None:
        self._target = target
        self._key = LedgerKey.of(context)

    def commit(self, requests: list[CommitRequest[Any]]) -> None:
        """Commit all requests. A failure fails the task, and the next attempt commits the same again."""
        for request in requests:
            committable = request.get_committable()
            if not self._target.commit(IntervalNumber.of(committable), committable.path):
                request.signal_already_committed()

    def sweep(self) -> None:
        """Remove the ledger's rows of timelines that ended long ago."""
        self._target.ledger.forget_old(self._target.session, self._key)

    def close(self) -> None:
        """Close the connection: the task ends, and its writer is closed already."""
        self._target.close()
