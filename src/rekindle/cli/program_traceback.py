"""The failure of a user's program as its author wants to see it: the own code's traceback, nothing of ours."""

from __future__ import annotations

import os
from traceback import FrameSummary, TracebackException

import rekindle
from rekindle.coordinator.driver_log import driver_log
from rekindle.errors import JobCancelledError, JobExecutionError, RekindleError

_OWN_FOLDER = os.path.dirname(os.path.abspath(rekindle.__file__)) + os.sep
_RUNNERS = ("<frozen runpy>", "<frozen importlib")


def failure_text(error: BaseException) -> str:
    """The text for stderr. A failed job says itself where user code failed; else it is a traceback.

    Frames of ours before the program's are left out, and those after them if we refused something on purpose.
    """
    if isinstance(error, JobExecutionError) and error.origin is not None:
        log = driver_log()
        if log is not None and log.has_shown(error.origin.traceback):
            return f"{str(error).removeprefix(error.origin.traceback).strip()}\n{error.origin.summary.strip()}\n"
    if isinstance(error, JobExecutionError | JobCancelledError):
        return f"{str(error).rstrip()}\n"
    shown = TracebackException.from_exception(error)
    _without_our_frames(shown, is_refusal=isinstance(error, RekindleError))
    return "".join(shown.format())


def _without_our_frames(shown: TracebackException, *, is_refusal: bool) -> None:
    frames = list(shown.stack)
    while frames and _is_ours(frames[0]):
        del frames[0]
    while is_refusal and frames and _is_ours(frames[-1]):
        del frames[-1]
    shown.stack[:] = frames
    if is_refusal:  # what led to our sentence is of no use to its reader
        shown.__cause__ = shown.__context__ = None
    for origin in (shown.__cause__, shown.__context__):
        if origin is not None:
            _without_our_frames(origin, is_refusal=False)


def _is_ours(frame: FrameSummary) -> bool:
    return frame.filename.startswith(_RUNNERS) or os.path.abspath(frame.filename).startswith(_OWN_FOLDER)
