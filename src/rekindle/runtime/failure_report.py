"""From an exception in a task to what a person reads: their own traceback first, then operator, subtask and record."""

from __future__ import annotations

import os
import traceback
from types import TracebackType

import rekindle
from rekindle.errors import CorruptCheckpointError, IncompatibleStateError, RekindleError, StoreError
from rekindle.protocol import TaskFailed, Verdict
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.task import Task

_OURS = os.path.dirname(os.path.abspath(rekindle.__file__)) + os.sep
_RECORD_CHARACTERS = 500


def describe_failure(name: str, task: Task | None, error: BaseException) -> TaskFailed:
    """What the driver is told about an error in a task, or while the tasks were built."""
    failure = error if isinstance(error, OperatorFailure) else None
    cause = failure.__cause__ if failure is not None and failure.__cause__ is not None else error
    verdict, sentence = _verdict(cause)
    return TaskFailed(
        task=name,
        operator=failure.operator if failure is not None else task.chain.name if task is not None else name,
        subtask=task.subtask if task is not None else 0,
        traceback=user_traceback(cause),
        summary=readable("".join(traceback.format_exception_only(cause)).strip()),
        record=readable(_shorten(failure.record)) if failure is not None and failure.has_record else None,
        verdict=verdict,
        sentence=readable(sentence),
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
    """Whether a frame that is not the engine's is on the way to the error."""
    return _first_user_frame(error.__traceback__) is not None


def own_traceback(error: BaseException) -> str:
    """The user's own traceback; empty when none of their code is on the way to the error."""
    return user_traceback(error) if is_user_code(error) else ""


def user_traceback(error: BaseException) -> str:
    """The traceback from the first frame that is not the engine's; the engine's own only if it is to blame."""
    frames = _first_user_frame(error.__traceback__)
    told = traceback.TracebackException(type(error), error, frames or error.__traceback__)
    if _is_answer_to_user(error):
        _leave_out_ours(told)
    lines = told.format() if told.stack or told.__cause__ or told.__context__ else told.format_exception_only()
    return readable("".join(lines))


def readable(text: str) -> str:
    """The text as it can be sent: lone surrogates, which UTF-8 does not have, are written out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _is_answer_to_user(error: BaseException) -> bool:
    """An error that we raise on purpose, or a call of theirs that did not fit: raised where the engine calls it."""
    frames = error.__traceback__
    return isinstance(error, RekindleError) or (frames is not None and frames.tb_next is None)


def _leave_out_ours(told: traceback.TracebackException) -> None:
    while told.stack and told.stack[-1].filename.startswith(_OURS):
        told.stack.pop()
    before = told.__cause__ or told.__context__
    if before is None or told.__suppress_context__ or all(each.filename.startswith(_OURS) for each in before.stack):
        told.__cause__ = told.__context__ = None


def _first_user_frame(frames: TracebackType | None) -> TracebackType | None:
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OURS):
        frames = frames.tb_next
    return frames


def _shorten(record: object) -> str:
    try:
        text = repr(record)
    except Exception as error:
        text = f"<{type(record).__name__} whose repr() fails: {error!r}>"
    return text if len(text) <= _RECORD_CHARACTERS else text[:_RECORD_CHARACTERS] + "…"
