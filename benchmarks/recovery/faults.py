"""The faults: each breaks the running job once and returns the time; measured is the time from then to a new record."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.recovery.session import Session

PARALLELISM, RESCALED = 2, 3
LOCAL, CLUSTER = "local[2]", "local-cluster[2,1,1024]"
#: The log lines at the end of each step, in this order; not every fault has all of them.
STEPS = (
    ("noticed", ("has failed and shuts down",)),
    ("old slots gone", ("failed, restart in", "damaged")),
    ("ended", ("FINISHED",)),
    ("Python", ("Program: imported",)),
    ("JVM", ("Spark's JVM runs",)),
    ("session", ("Spark 4", "Spark 5")),
    ("slots up", ("slots are up",)),
    ("state back", ("state is restored",)),
)


@dataclass(frozen=True)
class Fault:
    """A way to break the job. `strike` returns the time of the fault when the job is on its way back."""

    name: str
    strike: Callable[[Session], float]
    master: str = LOCAL
    parallelism_after: int = PARALLELISM
    target_s: float | None = None


@dataclass(frozen=True)
class Recovery:
    """The measured recovery from one fault."""

    seconds: float
    #: Processor time since the fault of all processes that were alive at the end.
    processor_seconds: float
    #: (step, seconds that it took), the last one ends with the new record.
    steps: tuple[tuple[str, float], ...]
    state_bytes: int


def _driver(session: Session) -> float:
    at = session.kill_driver()
    session.start(PARALLELISM, resume="latest")
    return at


def _stop_and_resume(session: Session) -> float:
    at, savepoint = session.stop()
    session.start(PARALLELISM, resume=savepoint)
    return at


def _rescale(session: Session) -> float:
    at, savepoint = session.stop()
    session.start(RESCALED, resume=savepoint)
    return at


FAULTS = (
    Fault("exception in a function", Session.raise_in_user_code, target_s=3.0),
    Fault("SIGKILL of a slot", Session.kill_slot, target_s=3.0),
    Fault("SIGKILL of the driver", _driver, target_s=10.0),
    Fault("stop with savepoint, resume", _stop_and_resume),
    Fault("rescale 2 → 3 with a savepoint", _rescale, parallelism_after=RESCALED),
    Fault("SIGKILL of an executor", Session.kill_executor, CLUSTER),
)


def measure(session: Session, fault: Fault, pause_s: float) -> Recovery:
    """Strike once, `pause_s` after a checkpoint of a job in its steady state."""
    began = time.time()
    session.wait(lambda: len(session.checkpoints(began)) >= 2, "two checkpoints")
    time.sleep(pause_s)
    state_bytes = session.checkpoints(began)[-1]["state_bytes"]
    used_before = session.processor_seconds()
    session.observed.mark()
    at = fault.strike(session)
    new, used = session.first_new_record()
    processor_seconds = sum(seconds - used_before.get(process, 0.0) for process, seconds in used.items())
    return Recovery(new - at, processor_seconds, steps_between(session.journal(at), at, new), state_bytes)


def steps_between(lines: Sequence[dict[str, Any]], at: float, new: float) -> tuple[tuple[str, float], ...]:
    """The time of each step in the log, and the rest until the new record."""
    found: list[tuple[str, float]] = []
    before = at
    for name, signs in STEPS:
        times = [
            line["at"] for line in lines
            if before <= line["at"] <= new and any(sign in line.get("text", "") for sign in signs)
        ]  # fmt: skip
        if times:
            found.append((name, times[0] - before))
            before = times[0]
    return (*found, ("first epoch", new - before))
