"""The running figures of subtasks, operators and edges: totals since the attempt began, and rates."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from rekindle.monitor.job_view import NO_WATERMARK, TaskFigures

#: Rates of records are averages over this time, as in Flink.
RATE_SPAN_S = 60.0
#: Shares of busy time are averages over a shorter time, as in Flink.
SHARE_SPAN_S = 10.0
#: A sample is kept at most this often.
_SAMPLE_EVERY_S = 1.0
_MOST_SAMPLES = int(RATE_SPAN_S / _SAMPLE_EVERY_S) + 2


class RunningTotal:
    """A total that only grows, and its rate over the last seconds; bounded.

    >>> total = RunningTotal(started_s=0.0)
    >>> total.add(10, now_s=2.0)
    >>> total.add(30, now_s=4.0)
    >>> total.value, total.per_s(4.0, span_s=60), total.per_s(8.0, span_s=5)
    (40.0, 10.0, 6.0)
    """

    __slots__ = ("_samples", "value")

    def __init__(self, started_s: float) -> None:
        self.value = 0.0
        self._samples: deque[tuple[float, float]] = deque(
            [(started_s, 0)], maxlen=int(RATE_SPAN_S / _SAMPLE_EVERY_S) + 2
        )

    def add(self, amount: float, now_s: float) -> None:
        """Add to the total."""
        if amount:
            self.value += amount
            if now_s - self._samples[-1][0] >= _SAMPLE_EVERY_S:
                self._samples.append((now_s, self.value))

    def per_s(self, now_s: float, span_s: float) -> float:
        """The growth per second over the last `span_s`, or since the beginning if that is less."""
        since_s = now_s - span_s
        at_s, before = self._samples[0]
        for sample in self._samples:
            if sample[0] > since_s:
                break
            at_s, before = sample
        elapsed_s = now_s - max(at_s, since_s)
        return (self.value - before) / max(elapsed_s, _SAMPLE_EVERY_S)


@dataclass
class SubtaskFigures:
    """The figures of one subtask in its current attempt."""

    started_s: float
    input_watermark: int = NO_WATERMARK
    output_watermark: int = NO_WATERMARK
    in_flight: int = 0
    records_in: RunningTotal = field(init=False)
    records_out: RunningTotal = field(init=False)
    records_sunk: RunningTotal = field(init=False)
    busy_ms: RunningTotal = field(init=False)
    back_pressured_ms: RunningTotal = field(init=False)

    def __post_init__(self) -> None:
        for name in ("records_in", "records_out", "records_sunk", "busy_ms", "back_pressured_ms"):
            setattr(self, name, RunningTotal(self.started_s))

    def figures(self, now_s: float) -> TaskFigures:
        """The figures as of now. A task that is neither busy nor back-pressured is idle."""
        busy = min(1000.0, self.busy_ms.per_s(now_s, SHARE_SPAN_S))
        pressed = min(1000.0 - busy, self.back_pressured_ms.per_s(now_s, SHARE_SPAN_S))
        elapsed_ms = (now_s - self.started_s) * 1000
        return TaskFigures(
            records_in=int(self.records_in.value),
            records_out=int(self.records_out.value),
            records_sunk=int(self.records_sunk.value),
            in_flight=self.in_flight,
            busy_ms=self.busy_ms.value,
            back_pressured_ms=self.back_pressured_ms.value,
            idle_ms=max(0.0, elapsed_ms - self.busy_ms.value - self.back_pressured_ms.value),
            in_per_s=self.records_in.per_s(now_s, RATE_SPAN_S),
            out_per_s=self.records_out.per_s(now_s, RATE_SPAN_S),
            sunk_per_s=self.records_sunk.per_s(now_s, RATE_SPAN_S),
            busy_ms_per_s=busy,
            back_pressured_ms_per_s=pressed,
            idle_ms_per_s=1000.0 - busy - pressed,
            input_watermark=self.input_watermark,
            output_watermark=self.output_watermark,
        )
