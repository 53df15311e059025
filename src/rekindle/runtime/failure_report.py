"""Reports an exception in a task to people: the user's own traceback first, then operator, subtask and record."""

from __future__ import annotations

import os
import traceback
from types import TracebackType

import rekindle
from rekindle.errors import CorruptCheckpointError, IncompatibleStateError, RekindleError, StoreError
from rekindle.protocol import TaskFailed, Verdict
from rekindle.runtime.log_capture import sendable
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.task import Task

_ENGINE_DIRECTORY = os.path.dirname(os.path.abspath(rekindle.__file__)) + os.sep
_RECORD_CHARACTERS = 500


def describe_failure(name: str, task: Task | None, error: BaseException) -> TaskFailed:
    """Return the message to the driver about an error in a task, or while the tasks were built."""
    failure = error if isinstance(error, OperatorFailure) else None
    cause = failure.__cause__ if failure is not None and failure.__cause__ is not None else error
    verdict, sentence = _verdict(cause)
    return TaskFailed(
        task=name,
        operator=failure.operator if failure is not None else task.chain.name if task is not None else name,
        subtask=task.subtask if task is not None else 0,
        traceback=user_traceback(cause),
        summary=sendable("".join(traceback.format_exception_only(cause)).strip()),
        record=sendable(_shorten(failure.record)) if failure is not None and failure.has_record else None,
        verdict=verdict,
        sentence=sendable(sentence),
    )


def _verdict(cause: BaseException) -> tuple[Verdict | None, str]:
    match cause:
        case CorruptCheckpointError():
            return Verdict.DAMAGED, cause.damage
        case IncompatibleStateError():
            return Verdict.INCOMPATIBLE, str(cause)
        case StoreError(retryable=False):
            return Verdict.STORE, str(cause)
        case _:
            return None, ""


def is_user_code(error: BaseException) -> bool:
    """Whether the traceback has a frame outside the engine."""
    return _first_user_frame(error.__traceback__) is not None


def own_traceback(error: BaseException) -> str:
    """Return the user's own traceback; empty when no user code is in it."""
    return user_traceback(error) if is_user_code(error) else ""


def user_traceback(error: BaseException) -> str:
    """Return the traceback from the first frame outside the engine; the engine's frames only if there is no other."""
    frames = _first_user_frame(error.__traceback__)
    report = traceback.TracebackException(type(error), error, frames or error.__traceback__)
    if _is_meant_for_user(error):
        _remove_engine_frames(report)
    explained = report.stack or report.__cause__ or report.__context__
    lines = report.format() if explained else report.format_exception_only()
    return sendable("".join(lines))


def _is_meant_for_user(error: BaseException) -> bool:
    """Whether the engine raised the error on purpose, or its call did not match the signature of the user's method."""
    frames = error.__traceback__
    return isinstance(error, RekindleError) or (frames is not None and frames.tb_next is None)


def _remove_engine_frames(report: traceback.TracebackException) -> None:
    while report.stack and report.stack[-1].filename.startswith(_ENGINE_DIRECTORY):
        report.stack.pop()
    before = report.__cause__ or report.__context__
    files = [each.filename for each in before.stack] if before is not None else []
    if report.__suppress_context__ or all(file.startswith(_ENGINE_DIRECTORY) for file in files):
        report.__cause__ = report.__context__ = None


def _first_user_frame(frames: TracebackType | None) -> TracebackType | None:
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_ENGINE_DIRECTORY):
        frames = frames.tb_next
    return frames


def _shorten(record: object) -> str:
    try:
        text = repr(record)
    except Exception as error:
        text = f"<{type(record).__name__} whose repr() fails: {error!r}>"
    return text if len(text) <= _RECORD_CHARACTERS else text[:_RECORD_CHARACTERS] + "…"
