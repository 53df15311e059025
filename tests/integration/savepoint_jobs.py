"""A job that counts by key at a known rate, for tests that stop it with savepoints and go on from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rekindle.common import Types
from tests.support.environments import checkpointed, environment

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
RECORDS, KEYS = 8000, 10
#: Slow enough that a job still runs when a test acts, also on a busy machine; what is left then comes quickly.
PER_SECOND, AT_ONCE = 1000, 50_000
DEADLINE_S = 60
EXPECTED = sorted((key, count) for key in range(KEYS) for count in range(1, RECORDS // KEYS + 1))


def with_savepoints(tmp_path: Path, parallelism: int = 2, interval_ms: int | None = 300, **settings: str):
    """Checkpoints and savepoints below one folder; without an interval only those that a test asks for."""
    directory = tmp_path / "checkpoints"
    keys: dict[str, Any] = {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints"), **settings}
    if interval_ms is None:
        return environment(parallelism, **{"execution.checkpointing.dir": str(directory)}, **keys)
    return checkpointed(parallelism, interval_ms, directory=directory, restarts=3, **keys)


class Running:
    """A job whose results are read while it runs; `client` is its handle."""

    def __init__(self, stream, name: str):
        self.results = stream.execute_and_collect(name)
        self.client = self.results.get_job_client()
        self.seen: list[Any] = []

    def read(self, count: int):
        """Wait for `count` results."""
        for result in self.results:
            self.seen.append(result)
            if len(self.seen) >= count:
                return

    def rest(self):
        """All results, once the job has ended."""
        self.seen.extend(self.results)
        return self.seen
