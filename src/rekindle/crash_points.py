"""Crash points: named places where a test may kill a process, before and after each step of the checkpoint protocol.

`REKINDLE_CRASH_AT` names the point: `after-publish`, `before-upload:3` (the third time this process gets there),
`after-cut@driver`, `before-commit:2@slot`, `before-restore@slot1` (only slot 1). With the suffix `/stop` the process is
paused there (SIGSTOP) until the test continues it (SIGCONT).
`REKINDLE_CRASH_ONCE` names a file that the dying process creates. While the file exists no process dies: the processes
of the next attempt inherit the environment and must live.
`REKINDLE_CRASH_FILE` names a file in which a test writes a point while the processes run (`after-cut@driver`, without a
number). The process that gets there first renames the file to `<file>.<its process id>`, then dies or is paused.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from dataclasses import dataclass
from enum import Enum

from rekindle.errors import ConfigurationError

CRASH_AT = "REKINDLE_CRASH_AT"
CRASH_ONCE = "REKINDLE_CRASH_ONCE"
CRASH_FILE = "REKINDLE_CRASH_FILE"

_SPEC = re.compile(
    r"(?P<point>[a-z-]+)(?::(?P<times>[1-9][0-9]*))?(?:@(?P<process>driver|slot)(?P<slot>[0-9]+)?)?(?P<stop>/stop)?"
)


class CrashPoint(Enum):
    """A place where a process may be killed; the value is the name in `REKINDLE_CRASH_AT`.

    >>> CrashPoint("before-publish").sentence
    'Every subtask has acknowledged; `_metadata` is not written yet.'
    """

    sentence: str

    def __new__(cls, name: str, sentence: str) -> CrashPoint:
        point = object.__new__(cls)
        point._value_ = name
        point.sentence = sentence
        return point

    BEFORE_BEGINNING = ("before-beginning", "The driver has claimed the job; its `_begun` note is not written yet.")
    AFTER_BEGINNING = ("after-beginning", "The `_begun` note is written; no slot and no sink has heard of this run.")
    BEFORE_CUT = ("before-cut", "The driver has chosen a checkpoint; the epoch that carries its barrier has not begun.")
    AFTER_CUT = ("after-cut", "The epoch that carried the barrier is complete; the cut is final.")
    BEFORE_SNAPSHOT = ("before-snapshot", "The barrier is at a task; its synchronous part has not begun.")
    AFTER_SNAPSHOT = ("after-snapshot", "A task's synchronous part is over; the next epoch's input may come.")
    BEFORE_UPLOAD = ("before-upload", "A task's asynchronous part is about to write to the store.")
    AFTER_UPLOAD = ("after-upload", "A task's files are in the store; the driver does not know of them yet.")
    BEFORE_GROUP = ("before-group", "An upload is about to encode a key group that it writes whole.")
    AFTER_GROUP = ("after-group", "An upload has encoded a key group; its state file is not complete yet.")
    BEFORE_ACKNOWLEDGEMENT = ("before-acknowledgement", "A task is about to tell the driver where its snapshot is.")
    AFTER_ACKNOWLEDGEMENT = ("after-acknowledgement", "A task has told the driver where its snapshot is.")
    BEFORE_PUBLISH = ("before-publish", "Every subtask has acknowledged; `_metadata` is not written yet.")
    AFTER_PUBLISH = ("after-publish", "`_metadata` is written: the checkpoint exists, and no task was notified.")
    BEFORE_METADATA = ("before-metadata", "The driver has checked its claim and is about to write `_metadata`.")
    AFTER_METADATA = ("after-metadata", "`_metadata` is written; the driver has not checked its claim again.")
    BEFORE_NOTIFY = ("before-notify", "The driver is about to tell the tasks that a checkpoint completed.")
    AFTER_NOTIFY = ("after-notify", "The driver has told the tasks that a checkpoint completed.")
    BEFORE_COMMIT = ("before-commit", "A task is about to commit the output that a completed checkpoint covers.")
    AFTER_COMMIT = ("after-commit", "A task has committed; the driver does not know it.")
    BEFORE_RESTORE = ("before-restore", "A task is about to read its state from a checkpoint.")
    AFTER_RESTORE = ("after-restore", "A task has restored its state; it has processed no record yet.")
    BEFORE_PART = ("before-part", "A task is about to take a part of its keyed state from a checkpoint.")
    AFTER_PART = ("after-part", "A task has taken a part of its keyed state; others may follow.")
    BEFORE_RECOMMIT = ("before-recommit", "A sink is about to commit the restored committables again.")
    AFTER_RECOMMIT = ("after-recommit", "A sink has committed the restored committables again; no record came yet.")


@dataclass
class _Armed:
    point: CrashPoint
    times_left: int
    driver: bool | None  # None: any process
    slot: int | None  # None: any slot
    once: str | None
    signal: signal.Signals


def _parse(text: str, once: str | None) -> _Armed:
    match = _SPEC.fullmatch(text)
    names = {point.value: point for point in CrashPoint}
    if match is None or match["point"] not in names or (match["process"] == "driver" and match["slot"]):
        raise ConfigurationError(
            f"{CRASH_AT}={text!r} is not a crash point: write NAME, NAME:n, NAME@driver, NAME@slot or NAME:n@slotI, "
            f"perhaps with /stop behind it, NAME being one of {', '.join(names)}."
        )
    return _Armed(
        point=names[match["point"]],
        times_left=int(match["times"] or 1),
        driver=None if match["process"] is None else match["process"] == "driver",
        slot=None if match["slot"] is None else int(match["slot"]),
        once=once,
        # SIGKILL, not an exit: nothing is flushed, closed or cleaned up, as when the machine fails.
        signal=signal.SIGKILL if match["stop"] is None else signal.SIGSTOP,
    )


_one_by_one = threading.Lock()
_armed: _Armed | None = None
_own_slot: int | None = None  # None: this process is the driver
_file = os.environ.get(CRASH_FILE)


def arm(text: str | None, once: str | None = None) -> None:
    """Set the crash point of this process; None disarms. `once` is the file of `REKINDLE_CRASH_ONCE`.

    >>> arm("after-publish:2@driver")
    >>> arm(None)
    """
    global _armed
    _armed = _parse(text, once) if text else None


def arm_from_environment() -> None:
    """Set the crash point that the environment names, or none; done once when this module is imported."""
    arm(os.environ.get(CRASH_AT), os.environ.get(CRASH_ONCE))


def this_is_slot(slot: int | None) -> None:
    """Record that this process is slot number `slot`; None, the initial value, means the driver."""
    global _own_slot
    _own_slot = slot


def reach(point: CrashPoint) -> None:
    """Kill this process if `point` is armed for it and has been reached often enough; else do nothing."""
    if _armed is not None and _armed.point is point:
        _count_down(_armed)
    if _file is not None:
        _obey_file(_file, point)


def _obey_file(file: str, point: CrashPoint) -> None:
    try:
        with open(file, encoding="utf-8") as order:
            armed = _parse(order.read().strip(), None)
    except FileNotFoundError:
        return
    if armed.point is point and _is_meant(armed) and _taken(file):
        _send_to_itself(armed.signal)


def _taken(file: str) -> bool:
    """Whether this process is the first to take the order."""
    try:
        os.rename(file, f"{file}.{os.getpid()}")
    except FileNotFoundError:
        return False
    return True


def _is_meant(armed: _Armed) -> bool:
    """Whether the point is armed for this process."""
    if armed.driver is not None and armed.driver is not (_own_slot is None):
        return False
    return armed.slot is None or armed.slot == _own_slot


def _count_down(armed: _Armed) -> None:
    if not _is_meant(armed):
        return
    with _one_by_one:  # while one thread dies here, no other gets past this point
        armed.times_left -= 1
        if armed.times_left == 0 and _first(armed.once):
            _send_to_itself(armed.signal)


def _send_to_itself(number: signal.Signals) -> None:
    """End or pause this process; this thread does not get past the call.

    The signal goes to this thread: another one, which a busy machine runs later, would let it go on until then.
    """
    signal.pthread_kill(threading.get_ident(), number)


def _first(once: str | None) -> bool:
    """Whether no process has died before; creates the file of `REKINDLE_CRASH_ONCE`."""
    if once is None:
        return True
    try:
        os.close(os.open(once, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True


arm_from_environment()
