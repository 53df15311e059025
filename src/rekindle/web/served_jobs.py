"""The jobs that a server shows: those of this process, running or over, or those of a history."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from rekindle.common.job_client import JobHandle
from rekindle.coordinator.job_events import JobEvent, JobOver
from rekindle.coordinator.observer import JobObserver
from rekindle.monitor.job_recorder import JobRecorder
from rekindle.monitor.job_view import JobView

#: The number of ended jobs that are shown, the newest ones.
_ENDED_JOBS = 20
#: The last lines of each slot that are kept of them.
_LOG_LINES = 50


@dataclass(frozen=True)
class RunningJob:
    """A job of this process: its read model, its handle, and the directories into which requests may write."""

    recorder: JobRecorder
    handle: JobHandle
    directories: tuple[str, ...] = ()
    store_options: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    may_cancel: bool = True
    #: How old its last completed checkpoint may be while it counts as ready; None: any age.
    max_checkpoint_age_ms: int | None = None


class ServedJobs:
    """Jobs by id, in the order in which they came; safe from any thread. Of a job that is over only a view is kept."""

    def __init__(self, *, is_history: bool = False) -> None:
        self.is_history = is_history
        self._lock = threading.Lock()
        self._running: dict[str, RunningJob] = {}
        self._ended: dict[str, JobView] = {}
        self._changes = 0

    def add(self, job: RunningJob) -> JobObserver:
        """Show a job that starts now. Returns what has to hear of its end."""
        with self._lock:
            self._running[str(job.handle.job_id)] = job
            self._changes += 1
        return _UntilItsEnd(self, job)

    def replace(self, views: Sequence[JobView]) -> None:
        """Show these jobs, which are over or belong to others, instead of those before."""
        with self._lock:
            self._ended = {view.job_id: view for view in views}
            self._changes += 1

    def ended(self, job: RunningJob) -> None:
        """Keep only the last view of a job."""
        view = job.recorder.view(log_lines=_LOG_LINES)
        with self._lock:
            self._running.pop(view.job_id, None)
            self._ended[view.job_id] = view
            while len(self._ended) > _ENDED_JOBS:
                del self._ended[next(iter(self._ended))]
            self._changes += 1

    def running(self, job_id: str) -> RunningJob | None:
        """A job of this process that is not over; None: there is none."""
        with self._lock:
            return self._running.get(job_id)

    def all_running(self) -> list[RunningJob]:
        """The jobs of this process that are not over."""
        with self._lock:
            return list(self._running.values())

    def view(self, job_id: str, *, log_lines: int = 0) -> JobView | None:
        """A job as of now; None: it is not known."""
        with self._lock:
            running, ended = self._running.get(job_id), self._ended.get(job_id)
        return running.recorder.view(log_lines=log_lines) if running is not None else ended

    def views(self, *, log_lines: int = 0) -> list[JobView]:
        """All jobs as of now, running ones first."""
        with self._lock:
            running, ended = list(self._running.values()), list(self._ended.values())
        return [job.recorder.view(log_lines=log_lines) for job in running] + ended

    def versions(self) -> dict[str, int]:
        """A number for each running job that changes when the job does, and one for the list of jobs under ''."""
        with self._lock:
            running = dict(self._running)
            changes = self._changes
        return {"": changes} | {job_id: job.recorder.version for job_id, job in running.items()}


class _UntilItsEnd:
    def __init__(self, jobs: ServedJobs, job: RunningJob) -> None:
        self._jobs, self._job = jobs, job

    def on_event(self, event: JobEvent) -> None:
        if isinstance(event, JobOver):
            self._jobs.ended(self._job)
