"""Failures as a person reads them: their own traceback first, then operator, subtask and record. Pure."""

from __future__ import annotations

from rekindle.errors import JobExecutionError, SlotLostError
from rekindle.protocol import SlotHello, TaskFailed


def task_failed(job_name: str, failed: TaskFailed) -> JobExecutionError:
    """The error that `execute()` raises when a task failed."""
    where = f"operator '{failed.operator}', subtask {failed.subtask + 1} (task '{failed.task}')"
    record = f", at record {failed.record}" if failed.record is not None else ""
    return JobExecutionError(f"{failed.traceback.rstrip()}\n\nJob '{job_name}' failed in {where}{record}.")


def slot_lost(job_name: str, slot: int, hello: SlotHello | None, why: str) -> SlotLostError:
    """The error that `execute()` raises when a slot died."""
    which = f"Slot {slot}" if hello is None else f"Slot {slot} (process {hello.pid} on {hello.host})"
    return SlotLostError(
        f"{which} of job '{job_name}' died: {why}. If it was not killed on purpose, look for the kernel's "
        "out-of-memory killer (dmesg) and for a crash of a native library."
    )
