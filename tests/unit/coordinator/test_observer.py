"""Those who watch a job cannot harm it."""

from __future__ import annotations

from rekindle.common.job_status import JobStatus
from rekindle.coordinator.lifecycle import AttemptState
from rekindle.coordinator.observer import JobObserver, Observers


class Notes(JobObserver):
    def __init__(self) -> None:
        self.heard: list[object] = []

    def on_status(self, status: JobStatus) -> None:
        self.heard.append(status)


class Broken(Notes):
    def on_status(self, status: JobStatus) -> None:
        super().on_status(status)
        raise KeyError("a bug")


def test_an_observer_with_a_bug_is_told_no_more_and_the_others_are(caplog):
    broken, after = Broken(), Notes()
    observers = Observers()
    observers.add(broken)
    observers.add(after)
    for status in (JobStatus.RUNNING, JobStatus.FINISHED):
        observers.on_status(status)
    assert (broken.heard, after.heard) == ([JobStatus.RUNNING], [JobStatus.RUNNING, JobStatus.FINISHED])
    assert "Broken failed and watches the job no more." in caplog.text


def test_every_event_reaches_every_observer():
    """The methods of the port: a new one must be passed on, too."""
    names = [name for name in vars(JobObserver) if name.startswith("on_")]
    assert len(names) >= 12
    told: list[str] = []

    class All(JobObserver):
        def __getattribute__(self, name: str):
            if name in names:
                return lambda *arguments: told.append(name)
            return super().__getattribute__(name)

    observers = Observers(All())
    arguments = {"on_attempt": (1, AttemptState.RUNNING), "on_log": (0, None), "on_heartbeat": (0, None)}
    two = ("on_failure", "on_results")
    for name in names:
        none = () if name in ("on_started", "on_ended", "on_over") else (None, None) if name in two else (None,)
        getattr(observers, name)(*arguments.get(name, none))
    assert told == names
