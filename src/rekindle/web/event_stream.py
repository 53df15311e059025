"""Server-sent events for pages: the list of jobs and each job, when they change, at most once a second.

A client that reads slowly holds its own connection only: it gets the newest state when it has read the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from rekindle.web.job_answers import jobs_overview
from rekindle.web.json_responses import encoded
from rekindle.web.live_answers import live
from rekindle.web.served_jobs import ServedJobs

#: How often a page hears of changes, and the longest silence: proxies close connections that say nothing.
_EVERY_S = 1.0
_SILENCE_S = 15.0
#: The number of epochs and checkpoints in an event; a page asks for all of them once.
_MOST = 20
#: The most pages that hear of events at a time.
MOST_CLIENTS = 32
#: The number of jobs whose last event is kept for the next page.
_MOST_JOBS = 100


class EventStreams:
    """The streams of a server; bounded."""

    def __init__(self, jobs: ServedJobs) -> None:
        self._jobs = jobs
        self._made: dict[str, tuple[int, bytes]] = {}  # the last event about each job, with its version
        self.clients = 0
        self.closing = asyncio.Event()

    def has_room(self) -> bool:
        """Whether another page may listen."""
        return self.clients < MOST_CLIENTS

    async def events(self, job_id: str | None) -> AsyncIterator[bytes]:
        """The events about one job, or about all; the first come at once."""
        self.clients += 1
        try:
            seen: dict[str, int] = {}
            silent_s = 0.0
            while True:
                is_last = self.closing.is_set()  # what has changed before is told: how the job ended
                versions = self._jobs.versions()
                changed = [each for each, version in versions.items() if seen.get(each) != version]
                gone = seen.keys() - versions.keys()
                seen = versions
                for event in self._about([*changed, *gone], versions, job_id):
                    yield event
                    silent_s = 0.0
                if is_last:
                    return
                silent_s += _EVERY_S
                if silent_s > _SILENCE_S:
                    silent_s = 0.0
                    yield b": still here\n\n"
                await self._pause()
        finally:
            self.clients -= 1

    def _about(self, changed: list[str], versions: Mapping[str, int], only: str | None) -> list[bytes]:
        """The events about jobs that have changed, or have ended and so have no version."""
        wanted = [each for each in changed if not each or only in (None, each)]
        return [event for each in wanted if (event := self._latest(each, versions.get(each, -1)))]

    def _latest(self, job_id: str, version: int) -> bytes:
        """The event about a job, or under '' about the list of jobs; pages share it."""
        known = self._made.get(job_id)
        if known is not None and known[0] == version:
            return known[1]
        event = self._event(job_id)
        if len(self._made) > _MOST_JOBS:
            self._made.clear()
        self._made[job_id] = version, event
        return event

    def _event(self, job_id: str) -> bytes:
        if not job_id:
            return _event("jobs", jobs_overview(self._jobs.views()))
        view = self._jobs.view(job_id)
        return b"" if view is None else _event("job", live(view, _MOST))

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self.closing.wait(), _EVERY_S)
        except TimeoutError:
            return


def _event(name: str, value: object) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + encoded(value) + b"\n\n"
