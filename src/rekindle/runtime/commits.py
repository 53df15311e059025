"""The uncommitted committables of a sink (I18): part of every snapshot, committed once a checkpoint is complete.

A committable is encoded once, when the writer hands it over. Its file is kept until no snapshot reads it any more.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from rekindle.checkpoint.committables import CommittableHead, StoredCommittable, read_committable
from rekindle.datastream.connectors.sink_api import CommitRequest, CommittableFile, SinkSerializer
from rekindle.errors import CommitError, JobCancelledError, SerializationError
from rekindle.metrics import Counter, MetricGroup
from rekindle.serde import tagged_dumps, tagged_loads

_LOG = logging.getLogger("rekindle.sink")
_LONGEST_PAUSE_S = 5.0


class PlainSerializer:
    """Encodes plain data with the tagged codec; never pickles (I20)."""

    def serialize(self, obj: Any) -> bytes:
        """Encode a committable."""
        return tagged_dumps(obj)

    def deserialize(self, data: bytes) -> Any:
        """Decode a committable."""
        return tagged_loads(data)


class _Outcome(Enum):
    COMMITTED = auto()
    ALREADY_COMMITTED = auto()
    RETRY = auto()
    FAILED_KNOWN = auto()
    FAILED_UNKNOWN = auto()


@dataclass
class _Pending:
    """A committable that is not committed yet."""

    committable: Any
    payload: bytes
    #: The checkpoint that it belongs to; None: no barrier has come since it was handed over.
    checkpoint_id: int | None = None
    retries: int = 0
    #: The newest snapshot that holds it: until that is written or aborted, the file may still be read.
    carried_in: int | None = None

    @property
    def path(self) -> str | None:
        return self.committable.path if isinstance(self.committable, CommittableFile) else None

    def stored(self) -> StoredCommittable:
        assert self.checkpoint_id is not None, "in a snapshot before its barrier"
        name = self.committable.name if isinstance(self.committable, CommittableFile) else None
        return StoredCommittable(CommittableHead(self.checkpoint_id, self.retries, self.payload, name), self.path)


class Request(CommitRequest[Any]):
    """A committable as the committer sees it."""

    def __init__(self, pending: _Pending) -> None:
        self.pending = pending
        self.outcome = _Outcome.COMMITTED
        self.error: BaseException | None = None
        self.update: Any = None
        self.updated = False

    def get_committable(self) -> Any:
        return self.pending.committable

    def get_number_of_retries(self) -> int:
        return self.pending.retries

    def signal_failed_with_known_reason(self, error: BaseException) -> None:
        self.outcome, self.error = _Outcome.FAILED_KNOWN, error

    def signal_failed_with_unknown_reason(self, error: BaseException) -> None:
        self.outcome, self.error = _Outcome.FAILED_UNKNOWN, error

    def retry_later(self) -> None:
        self.outcome = _Outcome.RETRY

    def update_and_retry_later(self, committable: Any) -> None:
        self.outcome = _Outcome.RETRY
        self.update, self.updated = committable, True

    def signal_already_committed(self) -> None:
        self.outcome = _Outcome.ALREADY_COMMITTED


class _Counters:
    """Flink's committer metrics."""

    def __init__(self, metrics: MetricGroup, pending: Callable[[], int]) -> None:
        def counter(name: str) -> Counter:
            return metrics.counter(f"{name}Committables")

        self.total = counter("total")
        self.by_outcome = {
            _Outcome.COMMITTED: counter("successful"),
            _Outcome.ALREADY_COMMITTED: counter("alreadyCommitted"),
            _Outcome.RETRY: counter("retried"),
            _Outcome.FAILED_KNOWN: counter("failed"),
        }
        metrics.gauge("pendingCommittables", pending)


@dataclass
class Commits:
    """The uncommitted committables of one subtask, oldest first."""

    name: str  # the task's, for messages
    serializer: SinkSerializer
    commit: Callable[[list[CommitRequest[Any]]], None]
    metrics: MetricGroup
    #: Waits so many seconds; returns whether the task was cancelled meanwhile.
    pause: Callable[[float], bool]
    retries: int
    retry_delay_s: float
    _pending: list[_Pending] = field(default_factory=list)
    _spent: list[tuple[int, str]] = field(default_factory=list)  # (snapshot that may still read it, file)

    def __post_init__(self) -> None:
        self._counters = _Counters(self.metrics, lambda: len(self._pending))

    # -- handed over and restored -------------------------------------------------------------------------------------

    def hand_over(self, committables: list[Any]) -> None:
        """Take committables from the writer; they belong to the next barrier's checkpoint."""
        for committable in committables:
            self._pending.append(_Pending(committable, self._encoded(committable)))
            self._counters.total.inc()

    def barrier(self, checkpoint_id: int) -> None:
        """Assign the committables since the last barrier to this checkpoint."""
        for each in self._pending:
            if each.checkpoint_id is None:
                each.checkpoint_id = checkpoint_id

    def restore(self, stored: list[Iterator[bytes]], new_path: Callable[[], str]) -> None:
        """Restore this subtask's share of committables; their files get new paths."""
        for pieces in stored:
            path = new_path()
            head = read_committable(pieces, path)
            committable = self._decoded(head, path)
            # It may have been committed before: that counts as a try.
            self._pending.append(_Pending(committable, head.payload, head.checkpoint_id, head.retries + 1))

    def _encoded(self, committable: Any) -> bytes:
        try:
            if isinstance(committable, CommittableFile):
                return tagged_dumps(committable.metadata)
            return bytes(self.serializer.serialize(committable))
        except SerializationError as error:
            raise SerializationError(
                f"A committable of {self.name} has no place in a checkpoint: {error} Or give the sink a "
                "get_committable_serializer()."
            ) from error

    def _decoded(self, head: CommittableHead, path: str) -> Any:
        if head.file_name is None:
            return self.serializer.deserialize(head.payload)
        return CommittableFile(path, head.file_name, tagged_loads(head.payload))

    # -- snapshots and commits ----------------------------------------------------------------------------------------

    def snapshot(self, checkpoint_id: int) -> list[StoredCommittable]:
        """All uncommitted committables, of any checkpoint, for a snapshot."""
        for each in self._pending:
            each.carried_in = checkpoint_id
        return [each.stored() for each in self._pending]

    def completed(self, checkpoint_id: int) -> None:
        """Commit the committables of this checkpoint and of all before it, savepoints included."""
        due = [each for each in self._pending if each.checkpoint_id is not None and each.checkpoint_id <= checkpoint_id]
        self._commit(due)
        self.remove_spent(checkpoint_id)

    def has_committed(self, checkpoint_id: int) -> bool:
        """Whether no committable of this checkpoint or an earlier one waits for a retry."""
        return not any(each.checkpoint_id is not None and each.checkpoint_id <= checkpoint_id for each in self._pending)

    def settle(self) -> None:
        """Commit everything now, with retries: no further checkpoint follows."""
        delay_s = self.retry_delay_s
        tries = 0
        while self._pending:
            self._commit(self._pending.copy())
            if not self._pending:
                return
            if tries == self.retries:
                raise CommitError(
                    f"{self.name} could not commit {len(self._pending)} of its committables in {tries + 1} tries: "
                    f"{_shown(self._pending[0].committable)}. See to what it commits to, or raise "
                    "sink.committer.retries."
                )
            if self.pause(delay_s):  # the checkpoint holds them: a restart commits them
                raise JobCancelledError(f"{self.name} was cancelled while it tried a commit again")
            tries += 1
            delay_s = min(delay_s * 2, _LONGEST_PAUSE_S)

    def _commit(self, due: list[_Pending]) -> None:
        if not due:
            return
        requests = [Request(each) for each in due]
        self.commit(list(requests))
        for request in requests:
            if request.outcome is _Outcome.FAILED_UNKNOWN:
                raise CommitError(
                    f"{self.name} does not know whether {_shown(request.get_committable())} was committed: "
                    f"{request.error!r}. A restart commits it again."
                ) from request.error
        for request in requests:
            self._conclude(request)
        gone = {id(request.pending) for request in requests if request.outcome is not _Outcome.RETRY}
        self._pending = [each for each in self._pending if id(each) not in gone]

    def _conclude(self, request: Request) -> None:
        pending = request.pending
        self._counters.by_outcome[request.outcome].inc()
        if request.outcome is _Outcome.RETRY:
            pending.retries += 1
            if request.updated:
                self._spend(pending, still_used=request.update)
                pending.committable, pending.payload = request.update, self._encoded(request.update)
            return
        if request.outcome is _Outcome.FAILED_KNOWN:
            _LOG.error("%s drops %s: %r", self.name, _shown(pending.committable), request.error)
        self._spend(pending)

    # -- files --------------------------------------------------------------------------------------------------------

    def _spend(self, pending: _Pending, still_used: Any = None) -> None:
        path = pending.path
        if path is None or (isinstance(still_used, CommittableFile) and still_used.path == path):
            return
        if pending.carried_in is None:
            _remove(path)
        else:
            self._spent.append((pending.carried_in, path))

    def remove_spent(self, completed_id: int) -> None:
        """Remove the files of committed committables. A slot uploads in order: no older snapshot reads them either."""
        for carried_in, path in self._spent:
            if carried_in <= completed_id:
                _remove(path)
        self._spent = [each for each in self._spent if each[0] > completed_id]

    def close(self) -> None:
        """Remove all committed files: the task ends, and no snapshot reads them any more."""
        for _, path in self._spent:
            _remove(path)
        self._spent = []


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        _LOG.warning("The committed file %s could not be removed: %s", path, error)


def _shown(committable: Any) -> str:
    text = repr(committable)
    return text if len(text) <= 200 else text[:200] + "…"
