"""The events of one task since its last completed checkpoint, bounded in bytes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from threading import get_ident

from rekindle.checkpoint.recordings import Epoch, Event, Polled, RecordedSegment, Start
from rekindle.clock import Clock
from rekindle.runtime.recording.time_log import TimeLog

_LOG = logging.getLogger("rekindle.replay")
#: The memory of an event, a chunk or a batch beside its bytes.
_OVERHEAD_BYTES = 100


class _OpenSegment:
    """A segment that is being recorded."""

    def __init__(self, checkpoint_id: int | None) -> None:
        self.checkpoint_id = checkpoint_id
        self.events: list[Event] = []
        self.bytes = 0
        self.lost = False

    def lose(self) -> None:
        self.events, self.bytes, self.lost = [], 0, True

    def append(self, later: _OpenSegment) -> None:
        """Go on with the events of a segment whose checkpoint was aborted."""
        self.bytes += later.bytes
        self.lost = self.lost or later.lost
        self.events = [] if self.lost else self.events + later.events


class Recorder:
    """Records the events of one task. Chunks come from other threads, everything else on the task's own."""

    def __init__(self, task: str, max_bytes: int) -> None:
        self._task = task
        self._max_bytes = max_bytes
        self._segments: list[_OpenSegment] = [_OpenSegment(None)]
        self._start: Start | None = None
        self._arrived: list[bytes] = []
        self._arrived_bytes = 0
        self._epoch: Epoch | None = None
        self._time: TimeLog | None = None
        self._thread = 0

    # -- what the task does -------------------------------------------------------------------------------------------

    @contextmanager
    def starting(self, start: Start) -> Iterator[None]:
        """Record the task's start."""
        self._start = start
        with self._timed(start):
            yield
        self._add_bytes(sum(map(len, start.shares)) + len(start.splits))

    @contextmanager
    def during(self, event: Event) -> Iterator[None]:
        """Record an event: the block is the task's work on it."""
        segment = self._segments[-1]
        if not segment.lost:
            segment.events.append(event)
        if isinstance(event, Epoch):
            event.chunks, arrived_bytes = self._arrived, self._arrived_bytes
            self._arrived, self._arrived_bytes = [], 0
            self._epoch = event
            self._add_bytes(arrived_bytes)
        try:
            with self._timed(event):
                yield
        finally:
            self._epoch = None
            self._add_bytes(_OVERHEAD_BYTES)

    @contextmanager
    def _timed(self, event: Event | Start) -> Iterator[None]:
        time = self._time = TimeLog()
        self._thread = get_ident()
        try:
            yield
        finally:
            self._time = None
            event.time = time.read()
            self._add_bytes(time.bytes)

    def received(self, chunk: bytes) -> None:
        """Record a chunk that has arrived for the next epoch; one with more than may be kept is not kept either."""
        self._arrived_bytes += len(chunk) + _OVERHEAD_BYTES
        if self._arrived_bytes > self._max_bytes:
            self._arrived.clear()
        else:
            self._arrived.append(chunk)

    @property
    def wants_source(self) -> bool:
        """Whether what the source brings now is kept: it is encoded only then."""
        return self._epoch is not None and not self._segments[-1].lost

    def polled(self, polled: Polled) -> None:
        """Record what the reader of the source returned."""
        if self._epoch is not None and self.wants_source:
            self._epoch.polled.append(polled)
            self._add_bytes(len(polled.chunk) + sum(len(chunk) for _, chunk in polled.aside) + _OVERHEAD_BYTES)

    def ran_dry(self, dry: bool) -> None:
        """Record whether the task has processed all input that was there."""
        if self._epoch is not None:
            self._epoch.dry = dry

    def waiting(self, splits: Collection[str] | None) -> None:
        """Record which splits the reader of the source has records of."""
        if self._epoch is not None and splits is not None:
            self._epoch.waiting_splits = list(splits)

    def emitted(self, chunk: bytes, pickled: bool) -> None:
        """Record what the source function emits, before it is processed."""
        if self._epoch is not None and self.wants_source:
            self._epoch.emitted.append((chunk, pickled))
            self._add_bytes(len(chunk) + _OVERHEAD_BYTES)
        if self._time is not None:
            self._time.tick(0.0)

    # -- time ---------------------------------------------------------------------------------------------------------

    def note_wall(self, time_ms: int) -> None:
        """Note that the wall clock was read; only what the task's own thread reads in an event counts."""
        if self._time is not None and get_ident() == self._thread:
            self._time.wall(time_ms)

    def ticking(self, monotonic: Callable[[], float]) -> Callable[[], float]:
        """The same function, with each reading noted as a tick."""

        def now() -> float:
            seconds = monotonic()
            if self._time is not None:
                self._time.tick(seconds)
            return seconds

        return now

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def barrier_passed(self, checkpoint_id: int) -> None:
        """Begin a segment: the task's snapshot of a checkpoint is taken."""
        self._segments.append(_OpenSegment(checkpoint_id))

    def completed(self, checkpoint_id: int) -> None:
        """Drop what came before a completed checkpoint."""
        indexes = [index for index, each in enumerate(self._segments) if each.checkpoint_id == checkpoint_id]
        if indexes:
            self._segments = self._segments[indexes[0] :]
            self._start = None

    def aborted(self, checkpoint_id: int) -> None:
        """Join the segments before and after the barrier of an aborted checkpoint."""
        for index, each in enumerate(self._segments):
            if index and each.checkpoint_id == checkpoint_id:
                self._segments[index - 1].append(each)
                del self._segments[index]
                return

    # -- limits and result --------------------------------------------------------------------------------------------

    def _add_bytes(self, more: int) -> None:
        segment = self._segments[-1]
        if segment.lost:
            return
        segment.bytes += more
        if sum(each.bytes for each in self._segments) > self._max_bytes:
            for each in self._segments:
                each.lose()
            _LOG.info(
                "%s: more than %d bytes of input since the last checkpoint: until the next one none is kept for a "
                "replay (rekindle.replay.max-bytes).",
                self._task,
                self._max_bytes,
            )

    def recorded(self) -> tuple[Start | None, list[RecordedSegment]] | None:
        """The start, if it is still part of it, and the segments; None: there was more input than is kept."""
        if any(each.lost for each in self._segments):
            return None
        return self._start, [RecordedSegment(each.checkpoint_id, each.events) for each in self._segments]


class RecordingClock:
    """A clock that notes each reading of the wall clock."""

    def __init__(self, clock: Clock, recorder: Recorder) -> None:
        self._clock = clock
        self._recorder = recorder

    def wall_ms(self) -> int:
        """Wall clock time in milliseconds since 1970."""
        time_ms = self._clock.wall_ms()
        self._recorder.note_wall(time_ms)
        return time_ms

    def monotonic(self) -> float:
        """Seconds since an arbitrary fixed point; for metrics only, so that it is not noted."""
        return self._clock.monotonic()
