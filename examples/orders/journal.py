"""The journal of a running job, as lines of JSON, for the program that started it to follow."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rekindle.common import JobClient
from rekindle.common.checkpoint_statistics import CheckpointStatistics, CheckpointStatus

_POLL_S = 0.05


class Journal:
    """A file to which lines are appended.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "journal")
    ...     Journal(path).write("status", status="RUNNING")
    ...     read_journal(path)[0]["status"]
    'RUNNING'
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def write(self, what: str, **details: Any) -> None:
        """Append a line, in one write; do nothing without a file."""
        if self._path is None:
            return
        line = json.dumps({"at": time.time(), "what": what, **details})
        with self._path.open("a") as file:
            file.write(f"{line}\n")


def read_journal(path: Path) -> list[dict[str, Any]]:
    """All complete lines so far."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


class Watch:
    """A thread that writes each change of a job's status and each completed checkpoint to the journal."""

    def __init__(self, client: JobClient, journal: Journal) -> None:
        self._client = client
        self._journal = journal
        self._over = threading.Event()
        self._status = ""
        self._restored = 0
        self._written: set[int] = set()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(_POLL_S):
            self._look()
        self._look()

    def _look(self) -> None:
        overview = self._client.get_checkpoint_statistics()
        for each in reversed(overview.history):
            if each.status is CheckpointStatus.COMPLETED and each.id not in self._written:
                self._written.add(each.id)
                self._journal.write("checkpoint", **describe(each))
        if overview.counts.restored > self._restored and overview.latest_restored is not None:
            self._restored = overview.counts.restored
            self._journal.write("restored", id=overview.latest_restored.id)
        status = self._client.get_job_status().result().name
        if status != self._status:
            self._status = status
            self._journal.write("status", status=status)


def describe(checkpoint: CheckpointStatistics) -> dict[str, Any]:
    """The figures of a completed checkpoint."""
    return {
        "id": checkpoint.id,
        "type": checkpoint.checkpoint_type,
        "duration_ms": checkpoint.end_to_end_duration_ms,
        "written_bytes": checkpoint.checkpointed_size,
        "state_bytes": checkpoint.state_size,
    }
