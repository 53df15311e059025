"""Serves the history of jobs that are over or dead: the same answers as a running driver's."""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from rekindle.checkpoint.store.options import StoreOptions
from rekindle.clock import Clock, SystemClock
from rekindle.common.configuration import Configuration
from rekindle.errors import CheckpointError
from rekindle.monitor.job_history import read_histories
from rekindle.web.rest_server import RestServer
from rekindle.web.rest_settings import RestSettings
from rekindle.web.served_jobs import ServedJobs

_LOG = logging.getLogger("rekindle.history")
_LOOK_EVERY_S = 10.0


class HistoryServer:
    """Shows the runs below a directory of checkpoints, and looks for new ones; a context manager.

    `server.link` is the address for people.
    """

    def __init__(
        self,
        directory: str,
        configuration: Configuration | None = None,
        options: StoreOptions | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._directory, self._options, self._clock = directory, options, clock or SystemClock()
        self._jobs = ServedJobs(is_history=True)
        self._stopped = threading.Event()
        self.look()
        self.server = RestServer(RestSettings.of(configuration or Configuration()), self._jobs)
        self._thread = threading.Thread(target=self._look_again, name="rekindle-histories", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Read the directory again."""
        self._jobs.replace(read_histories(self._directory, self._clock.wall_ms(), self._options))

    def close(self) -> None:
        """Stop to serve."""
        self._stopped.set()
        self.server.close()
        self._thread.join()

    def __enter__(self) -> HistoryServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _look_again(self) -> None:
        while not self._stopped.wait(_LOOK_EVERY_S):
            try:
                self.look()
            except CheckpointError as error:
                _LOG.warning("The history at %s cannot be read: %s", self._directory, error)
