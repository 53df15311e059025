"""The transitions between job statuses as a table, and such tables as Mermaid diagrams (`docs/architecture.md`)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from rekindle.common.job_status import JobStatus

#: The statuses that may follow each status.
TRANSITIONS: dict[JobStatus, frozenset[JobStatus]] = {
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
    return following in TRANSITIONS[current]


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
