"""The history of a job's runs beside its checkpoints: written while it runs, read when it is over or dead.

A thread of its own writes, so that a slow store never slows the job. One file per run is replaced as a whole.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from msgspec.structs import replace

from rekindle.checkpoint.paths import history_folder, history_path, is_history
from rekindle.checkpoint.store.options import StoreOptions, options_for
from rekindle.checkpoint.store.port import Store
from rekindle.checkpoint.stored_places import open_stored
from rekindle.common.job_status import JobStatus
from rekindle.coordinator.job_events import AttemptFailed, CheckpointChanged, JobEvent, JobOver, StatusEntered
from rekindle.errors import CheckpointError
from rekindle.monitor.job_recorder import JobRecorder
from rekindle.monitor.job_view import JobView
from rekindle.monitor.view_codec import decode_view, encode_view

_LOG = logging.getLogger("rekindle.history")
#: The last lines of each slot that are kept.
_LOG_LINES = 50
#: The pause before the first write, so that a short job writes once, and between two writes.
_FIRST_PAUSE_S = 1.0
_PAUSE_S = 10.0
#: The driver of a run that has not ended and has not written for this time is dead.
DEAD_AFTER_MS = 90_000
#: The longest time that the end of a job waits for its last write.
_LAST_WRITE_S = 10.0


class HistoryWriter:
    """Writes the views of a recorder into a store."""

    def __init__(self, recorder: JobRecorder, store: Store, job_name: str, runs: int) -> None:
        self._recorder, self._store, self._job_name, self._runs = recorder, store, job_name, runs
        self._changed = threading.Condition()
        self._urgent = self._over = False
        self._thread = threading.Thread(target=self._run, name="rekindle-history", daemon=True)

    def on_event(self, event: JobEvent) -> None:
        """Begin to write when the job runs, write soon after failures and savepoints, and a last time at the end."""
        match event:
            case StatusEntered(JobStatus.RUNNING) if not self._thread.ident:
                self._thread.start()
            case AttemptFailed():
                self._hurry()
            case CheckpointChanged(checkpoint) if checkpoint.is_savepoint:
                self._hurry()
            case JobOver():
                self._finish()

    def _finish(self) -> None:
        """Write the last view; a store that does not answer does not hold the job's end for ever."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        if not self._thread.ident:
            self._thread.start()
        self._thread.join(_LAST_WRITE_S)

    def _hurry(self) -> None:
        with self._changed:
            self._urgent = True
            self._changed.notify_all()

    def _run(self) -> None:
        pause_s, path = _FIRST_PAUSE_S, ""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._urgent or self._over, pause_s)
                over, self._urgent = self._over, False
            try:
                path = self._write(is_first=not path)
            except Exception as error:  # whatever a store raises: the job goes on without a history
                _LOG.warning("The history of job '%s' cannot be written: %s", self._job_name, error)
            if over:
                return
            pause_s = _PAUSE_S

    def _write(self, *, is_first: bool) -> str:
        view = self._recorder.view(log_lines=_LOG_LINES)
        path = history_path(self._job_name, view.started_ms, view.job_id)
        self._store.put(path, encode_view(view))
        if is_first:
            self._delete_old()
        return path

    def _delete_old(self) -> None:
        known = sorted(entry.path for entry in self._store.list(history_folder(self._job_name)))
        self._store.delete(*[path for path in known if is_history(path)][: -self._runs])


def read_histories(
    directory: str, now_ms: int, options: StoreOptions | None = None, on_damage: Callable[[str], None] | None = None
) -> list[JobView]:
    """The last views of all runs below a directory of checkpoints, newest first.

    A run that has not ended and whose driver writes no more is SUSPENDED. Damaged files are told to `on_damage`, and
    left out.
    """
    store = open_stored(directory, options_for(directory, options or {}))
    views = []
    for entry in store.list():
        if not is_history(entry.path):
            continue
        try:
            views.append(_as_of(decode_view(store.read(entry.path), entry.path), now_ms))
        except CheckpointError as error:
            (on_damage or _warn)(str(error))
    return sorted(views, key=lambda view: view.started_ms, reverse=True)


def _as_of(view: JobView, now_ms: int) -> JobView:
    if view.ended or now_ms - view.taken_ms <= DEAD_AFTER_MS:
        return view
    entered = {**view.entered_ms, "SUSPENDED": view.taken_ms}
    return replace(view, status="SUSPENDED", entered_ms=entered, ended_ms=view.taken_ms)


def _warn(message: str) -> None:
    _LOG.warning("%s", message)
