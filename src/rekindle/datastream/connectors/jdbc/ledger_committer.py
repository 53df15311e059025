"""The committer of an exactly-once JDBC sink."""

from __future__ import annotations

from typing import Any

from rekindle.datastream.connectors.jdbc.interval_number import IntervalNumber, LedgerKey
from rekindle.datastream.connectors.jdbc.interval_target import IntervalTarget
from rekindle.datastream.connectors.sink_api import CommitRequest, Committer, CommitterInitContext


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
