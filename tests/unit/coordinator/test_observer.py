"""Those who watch a job cannot harm it."""

from __future__ import annotations

from rekindle.common.job_status import JobStatus
from rekindle.coordinator.job_events import JobOver, StatusEntered
from rekindle.coordinator.observer import JobEvents


class Notes:
    def __init__(self) -> None:
        self.heard: list[object] = []

    def on_event(self, event) -> None:
        self.heard.append(event)


class Broken(Notes):
    def on_event(self, event) -> None:
        super().on_event(event)
        raise KeyError("a bug")


def test_an_observer_with_a_bug_is_told_no_more_and_the_others_are(caplog):
    broken, after = Broken(), Notes()
    events = JobEvents()
    events.subscribe(broken)
    events.subscribe(after)
    said = [StatusEntered(JobStatus.RUNNING), StatusEntered(JobStatus.FINISHED)]
    for event in said:
        events.emit(event)
    assert (broken.heard, after.heard) == (said[:1], said)
    assert "Broken failed and watches the job no more." in caplog.text


def test_trusted_observers_hear_first():
    order: list[str] = []

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        def on_event(self, event) -> None:
            order.append(self.name)

    events = JobEvents()
    for name, trusted in (("page", False), ("master", True), ("progress", True)):
        events.subscribe(Named(name), trusted=trusted)
    events.emit(JobOver())
    assert order == ["master", "progress", "page"]
