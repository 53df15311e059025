"""The errors of failed jobs: the user's own traceback first, then operator, subtask and record."""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.coordinator.closed_output import is_closed
from rekindle.coordinator.replay_hint import replay_hint
from rekindle.errors import (
    CorruptCheckpointError,
    FailureOrigin,
    IncompatibleStateError,
    JobExecutionError,
    OutputClosedError,
    RekindleError,
    SlotLostError,
    StoreError,
)
from rekindle.graph.python_files import with_own_paths
from rekindle.protocol import SlotHello, TaskFailed, Verdict


def task_failed(job_name: str, failed: TaskFailed) -> RekindleError:
    """The error that `execute()` raises when a task failed."""
    match failed.verdict:
        case Verdict.DAMAGED:
            return CorruptCheckpointError(failed.sentence)
        case Verdict.INCOMPATIBLE:
            return IncompatibleStateError(
                f"Operator '{failed.operator}' of job '{job_name}' cannot take its state: {failed.sentence}"
            )
        case Verdict.STORE:
            return StoreError(failed.sentence)
    where = f"operator '{failed.operator}', subtask {failed.subtask + 1} (task '{failed.task}')"
    record = f", at record {failed.record}" if failed.record is not None else ""
    traceback = with_own_paths(failed.traceback.rstrip())
    origin = FailureOrigin(
        failed.task,
        failed.operator,
        failed.subtask,
        traceback,
        with_own_paths(failed.summary),
        failed.record,
        failed.recording,
    )
    sentence = f"Job '{job_name}' failed in {where}{record}.{replay_hint(failed)}"
    return JobExecutionError(f"{traceback}\n\n{sentence}", origin=origin)


def headline(error: BaseException) -> str:
    """A failure in one sentence: the exception first, then where, and at which record."""
    origin = error.origin if isinstance(error, JobExecutionError) else None
    if origin is None:
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        return lines[-1] if lines[0].startswith("Traceback") else lines[0]
    record = f", at record {origin.record}" if origin.record is not None else ""
    what = " ".join(origin.summary.split()).removesuffix(".")
    return f"{what} (in operator '{origin.operator}', subtask {origin.subtask + 1}{record})."


def slot_lost(job_name: str, slot: int, hello: SlotHello | None, why: str) -> SlotLostError:
    """The error that `execute()` raises when a slot died."""
    which = f"Slot {slot}" if hello is None else f"Slot {slot} (process {hello.pid} on {hello.host})"
    return SlotLostError(f"{which} of job '{job_name}' died: {why}.")


def output_closed(job_name: str, stream: str, error: Exception) -> JobExecutionError:
    """The error when the job's lines can no longer be written: its output would be lost."""
    kind = OutputClosedError if is_closed(error) else JobExecutionError
    return kind(f"Job '{job_name}' cannot write to the program's {stream} any more: {error}.")


def close_failed(job_name: str, errors: Sequence[str]) -> JobExecutionError:
    """The error when a function's close() failed at the job's end: records that it held back are lost."""
    more = f" {len(errors) - 1} more close() failed." if len(errors) > 1 else ""
    first = with_own_paths(errors[0])
    return JobExecutionError(f"{first}\n\nJob '{job_name}' failed at its end, when its functions closed.{more}")
