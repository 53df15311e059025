"""SIGTERM, as systemd, Kubernetes and `docker stop` send it: jobs stop with a savepoint or are cancelled, in time.

`rekindle run` opens the block around a whole program, `execute()` around its waiting. A program that has set a handler
of its own keeps it ([decision 0035](../../../docs/decisions/0035-sigterm-suspends-jobs.md)).

A thread hears of the signal over Python's wakeup descriptor, because Python's own handler may come late: it waits until
the main thread runs, which a signal right before a sleep does not wake. Another thread ends the jobs, and then lets the
handler raise `Terminated` in the main thread, wherever that is.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from time import monotonic
from types import FrameType, TracebackType
from typing import Any, NoReturn

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.common.job_client import JobHandle
from rekindle.errors import ConfigurationError

_LOG = logging.getLogger("rekindle.job")
#: The exit status of a program whose jobs were cancelled, as shells show the signal.
_CANCELLED = 128 + signal.SIGTERM
_STOPPED = 0
#: How long a cancellation may take that comes after the grace period. Jobs that still run then end with the driver.
_LAST_S = 3.0
_WAKE_AGAIN_S = 0.05
#: Words to the listening thread; those for signals are Python's.
_SIGTERM, _HANDLED, _LEFT = bytes([signal.SIGTERM]), b"H", b"L"


@dataclass(frozen=True)
class TerminationSettings:
    """How a job ends after SIGTERM.

    >>> TerminationSettings.of(Configuration())
    TerminationSettings(with_savepoint=False, grace_s=25.0)
    """

    with_savepoint: bool
    grace_s: float

    @staticmethod
    def of(configuration: Configuration) -> TerminationSettings:
        """Read the settings. ConfigurationError: a savepoint is wanted that has no directory."""
        with_savepoint = configuration.get(config.SIGTERM_ACTION) == "savepoint"
        if with_savepoint and configuration.get(config.SAVEPOINT_DIRECTORY) is None:
            raise ConfigurationError(
                f"'{config.SIGTERM_ACTION.key}: savepoint' needs a directory for the savepoint: set "
                f"{config.SAVEPOINT_DIRECTORY.key}."
            )
        return TerminationSettings(with_savepoint, configuration.get_millis(config.SIGTERM_GRACE) / 1000)


@dataclass(frozen=True)
class TerminableJob:
    """A job of this process."""

    name: str
    handle: JobHandle
    settings: TerminationSettings

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.handle.result().done()


class Terminated(SystemExit):
    """Ends the program after SIGTERM, when its jobs have ended."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Termination:
    """A block in which SIGTERM ends jobs; without effect outside the main thread, or where a handler is set already.

    In a block inside another one, the outer one ends the jobs.
    """

    def __init__(self, jobs: Callable[[], Sequence[TerminableJob]]) -> None:
        self._jobs = jobs
        self._is_asked = self._is_handled = self._is_ending = self._is_inside = self._is_raised = False
        self._outer: Termination | None = None
        self._descriptor = self._descriptor_before = -1
        self._ended = threading.Event()
        self._status = _CANCELLED

    def __enter__(self) -> Termination:
        if threading.current_thread() is not threading.main_thread():
            return self
        handler = signal.getsignal(signal.SIGTERM)
        owner = getattr(handler, "__self__", None)
        if isinstance(owner, Termination):
            self._outer = owner
        elif handler is signal.SIG_DFL:
            self._install()
        return self

    def _install(self) -> None:
        heard, self._descriptor = os.pipe()
        os.set_blocking(self._descriptor, False)
        threading.Thread(target=self._listen, args=(heard,), name="rekindle-sigterm", daemon=True).start()
        self._is_inside = True
        _installed.append(self)
        self._descriptor_before = signal.set_wakeup_fd(self._descriptor, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_signal)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._outer is not None:
            self._outer.end_if_asked()
        if not self._is_inside:
            return
        self._is_inside = False
        if not self._is_asked:
            self.uninstall()
            os.write(self._descriptor, _LEFT)
            os.close(self._descriptor)
        if self._is_asked:  # the handler stays: the process ends, and a second signal ends it at once
            self._terminate()

    def uninstall(self) -> None:
        """Take the handler away, unless the program has set its own meanwhile."""
        _installed.remove(self)
        if signal.getsignal(signal.SIGTERM) == self._on_signal:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        current = signal.set_wakeup_fd(self._descriptor_before)
        if current != self._descriptor:
            signal.set_wakeup_fd(current)

    def end_if_asked(self) -> None:
        """End the program if SIGTERM has come, instead of going on to its next job."""
        if self._is_asked:
            self._terminate()

    def _terminate(self) -> NoReturn:
        self._ended.wait()
        raise Terminated(self._status) from None

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._ended.is_set():  # sent by `_wake_main_thread`
            if self._is_inside and not self._is_raised:
                self._is_raised = True
                raise Terminated(self._status)
        elif self._is_handled:
            os._exit(_CANCELLED)
        else:
            self._is_handled = self._is_asked = True
            os.write(self._descriptor, _HANDLED)  # for a program that has taken the wakeup descriptor

    # -- on threads of its own ----------------------------------------------------------------------------------------

    def _listen(self, heard: int) -> None:
        """Let the jobs end at the first signal, and the process at once at the second."""
        signals = 0
        while (word := os.read(heard, 1)) != _LEFT:
            signals += word == _SIGTERM
            if signals > 1 and not self._ended.is_set():
                os._exit(_CANCELLED)
            if word in (_SIGTERM, _HANDLED) and not self._is_ending:
                self._is_ending = self._is_asked = True
                threading.Thread(target=self._end, name="rekindle-sigterm-end", daemon=True).start()
        os.close(heard)

    def _end(self) -> None:
        try:
            stopped = end_jobs([job for job in self._jobs() if not job.is_over])
            self._status = _STOPPED if stopped else _CANCELLED
        finally:
            self._ended.set()
            self._wake_main_thread()

    def _wake_main_thread(self) -> None:
        """Let the handler run in the main thread, also if that sleeps; a signal between two sleeps is not noticed."""
        main, pause = threading.main_thread().ident, threading.Event()
        assert main is not None
        while self._is_inside and not self._is_raised:
            signal.pthread_kill(main, signal.SIGTERM)
            pause.wait(_WAKE_AGAIN_S)


#: The block whose handler is set, if there is one.
_installed: list[Termination] = []


# A forked child, as of `multiprocessing`, is not the driver: SIGTERM ends it as any other process. Until it has the
# default handler the signal waits, else the child would write into the descriptor of its parent.
_forking = threading.local()


def _before_fork() -> None:
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM}) if _installed else None


def _after_fork() -> None:
    if _forking.mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _in_child() -> None:
    for each in list(_installed):
        each.uninstall()
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


def end_jobs(jobs: Sequence[TerminableJob]) -> bool:
    """End jobs as their settings say, and wait for their ends. Returns whether all have a savepoint, or finished."""
    begun = monotonic()
    ending = [(job, _begin(job)) for job in jobs]
    ends = [_see_to_the_end(job, future, begun + job.settings.grace_s) for job, future in ending]
    return bool(ends) and all(ends)


def _begin(job: TerminableJob) -> Future[Any]:
    if job.settings.with_savepoint:
        stopping = job.handle.stop_with_savepoint(False)  # before the log, whose reader may have got SIGTERM, too
        _LOG.warning("SIGTERM: job '%s' stops with a savepoint, within %g s.", job.name, job.settings.grace_s)
        return stopping
    _LOG.warning("SIGTERM: job '%s' is cancelled, and its checkpoints stay.", job.name)
    return job.handle.suspend()


def _see_to_the_end(job: TerminableJob, ending: Future[Any], deadline: float) -> bool:
    """Wait for the end of a job. Returns whether it has a savepoint, or has finished by itself."""
    if not job.settings.with_savepoint:
        return _is_cancelled_in_time(job, ending, deadline)
    try:
        place = ending.result(max(0.0, deadline - monotonic()))
    except TimeoutError:
        grace_s = job.settings.grace_s
        _LOG.warning(
            "The savepoint of job '%s' was not complete after %g s: the job is cancelled, and its checkpoints stay.",
            job.name,
            grace_s,
        )
    except Exception as error:
        if job.is_over:
            return job.handle.result().exception() is None
        _LOG.warning(
            "There is no savepoint of job '%s': %s The job is cancelled; its checkpoints stay.", job.name, error
        )
    else:
        _LOG.warning("Job '%s' has stopped: its savepoint is at %s.", job.name, place)
        return True
    return _is_cancelled_in_time(job, job.handle.suspend(), max(deadline, monotonic() + _LAST_S))


def _is_cancelled_in_time(job: TerminableJob, ending: Future[Any], deadline: float) -> bool:
    try:
        ending.result(max(0.0, deadline - monotonic()))
    except TimeoutError:
        _LOG.warning("Job '%s' has not ended yet: its slots end with the driver.", job.name)
        return False
    return job.is_over and job.handle.result().exception() is None
