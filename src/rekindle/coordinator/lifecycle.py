"""The lives of a job and of an attempt as tables of transitions; such tables as diagrams (`docs/architecture.md`)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from rekindle.common.job_status import JobStatus

#: The statuses that may follow each status.
JOB_TRANSITIONS: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.CREATED: frozenset({JobStatus.RUNNING, JobStatus.FAILING, JobStatus.CANCELLING, JobStatus.RESTARTING}),
    JobStatus.RUNNING: frozenset({JobStatus.FINISHED, JobStatus.FAILING, JobStatus.CANCELLING, JobStatus.RESTARTING}),
    JobStatus.RESTARTING: frozenset({JobStatus.RUNNING, JobStatus.RESTARTING, JobStatus.FAILING, JobStatus.CANCELLING}),
    JobStatus.FAILING: frozenset({JobStatus.FAILED, JobStatus.RESTARTING, JobStatus.CANCELLING}),
    JobStatus.CANCELLING: frozenset({JobStatus.CANCELED, JobStatus.FAILED}),
    JobStatus.FINISHED: frozenset(),
    JobStatus.FAILED: frozenset(),
    JobStatus.CANCELED: frozenset(),
}


def may_follow(current: JobStatus, following: JobStatus) -> bool:
    """Whether a job in `current` may go to `following`.

    >>> may_follow(JobStatus.RUNNING, JobStatus.FINISHED), may_follow(JobStatus.FAILED, JobStatus.RUNNING)
    (True, False)
    """
    return following in JOB_TRANSITIONS[current]


class AttemptState(Enum):
    """How far an attempt has come."""

    CREATED = "nothing is acquired"
    ACQUIRING = "the attempt is claimed, the driver's socket is opened"
    STARTING_SLOTS = "Spark places the slots, and they connect to the driver"
    DEPLOYING = "slots restore state and open functions"
    RUNNING = "epochs run"
    CLOSING = "the input has ended, functions close"
    SHUTTING_DOWN = "after a failure or a cancellation: functions that can, close"
    FINISHED = "every function is closed"
    FAILED = "the restart strategy decides what follows"
    CANCELED = "the job ends"


_FAILED_OR_CANCELED = frozenset({AttemptState.FAILED, AttemptState.CANCELED})
ATTEMPT_TRANSITIONS: dict[AttemptState, frozenset[AttemptState]] = {
    AttemptState.CREATED: frozenset({AttemptState.ACQUIRING}),
    AttemptState.ACQUIRING: frozenset({AttemptState.STARTING_SLOTS}) | _FAILED_OR_CANCELED,
    AttemptState.STARTING_SLOTS: frozenset({AttemptState.DEPLOYING, AttemptState.SHUTTING_DOWN}),
    AttemptState.DEPLOYING: frozenset({AttemptState.RUNNING, AttemptState.SHUTTING_DOWN}),
    AttemptState.RUNNING: frozenset({AttemptState.CLOSING, AttemptState.SHUTTING_DOWN}),
    # Every slot has been asked to close already.
    AttemptState.CLOSING: frozenset({AttemptState.FINISHED}) | _FAILED_OR_CANCELED,
    AttemptState.SHUTTING_DOWN: _FAILED_OR_CANCELED,
    AttemptState.FINISHED: frozenset(),
    AttemptState.FAILED: frozenset(),
    AttemptState.CANCELED: frozenset(),
}


def state_diagram(transitions: Mapping[Enum, frozenset[Enum]]) -> str:
    """A table as a Mermaid diagram: the first state is the start, a state without followers is an end.

    >>> class Door(Enum):
    ...     OPEN = 1
    ...     SHUT = 2
    >>> print(state_diagram({Door.OPEN: frozenset({Door.SHUT}), Door.SHUT: frozenset()}))
    stateDiagram-v2
        [*] --> OPEN
        OPEN --> SHUT
        SHUT --> [*]
    """
    states = list(transitions)
    lines = ["stateDiagram-v2", f"    [*] --> {states[0].name}"]
    for state in states:
        following = sorted(transitions[state], key=states.index)
        lines += [f"    {state.name} --> {each.name}" for each in following]
        if not following:
            lines.append(f"    {state.name} --> [*]")
    return "\n".join(lines)
