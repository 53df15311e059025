"""Timestamps and watermarks: `assign_timestamps_and_watermarks` and the watermark strategy of a source.

A watermark is emitted after a fixed number of records and at the end of each epoch, so that its place depends on the
cuts, not on the clock (I1), unless an interval is set. A custom generator is also asked once per interval while no
record comes (I4). Where a reader says which records are of which split, each split has an event time of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any, Final

from rekindle.common.watermark_strategy import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    NO_TIMESTAMP,
    WatermarkStrategy,
    event_time,
)
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.output import failed_record
from rekindle.runtime.operators.roles import EpochListener, Positioned, Timed
from rekindle.runtime.operators.source_times import ClockTurns, GeneratorTimes, SourceTimes, Turns
from rekindle.runtime.operators.stateless import method_or_callable

#: How many records of an epoch pass between two watermarks.
WATERMARK_RECORDS: Final = 4096


class TimestampsOperator(Operator, Positioned, Timed, EpochListener):
    """Assigns timestamps and generates watermarks; of the watermarks upstream it passes on only the last one."""

    def __init__(self, node: OperatorNode, context: OperatorContext, strategy: WatermarkStrategy) -> None:
        super().__init__(node, context)
        self._assigner = strategy.timestamp_assigner
        #: The event time of the records; a reader before this operator shares it.
        self.times = (GeneratorTimes if strategy.generator_supplier is not None else SourceTimes)(strategy)
        settings = context.settings
        turns = ClockTurns if settings.auto_watermark_by_clock else Turns
        self._turns = turns(settings.auto_watermark_interval_ms)
        self._epoch_ended_ms = 0
        self._since_watermark = 0  # records of this epoch since its last watermark

    # -- life ---------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        assigner = self._assigner
        self._assign: Callable[[Any, int], int] | None = (
            method_or_callable(assigner, "extract_timestamp") if assigner is not None else None
        )
        now_ms = self.context.clock.wall_ms()
        self._turns.begin(now_ms)
        self._epoch_ended_ms = now_ms
        self.times.set_splits(self.times.splits.splits())

    def position(self) -> Any:
        return self.times.position()

    def seek(self, position: Any) -> None:
        self.times.seek(position)
        self.current_watermark = self.times.watermark
        self._turns.restored()

    def restore_watermark(self, watermark: int) -> None:
        self._advance_to(watermark)
        self.times.last_emitted = max(self.times.last_emitted, watermark)

    def _advance_to(self, watermark: int) -> None:
        self.current_watermark = self.times.watermark = watermark

    # -- records ------------------------------------------------------------------------------------------------------

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        """Process records of one split."""
        times = self._timestamps(records, timestamps)
        self.times.idle = False
        done = 0
        while (until := done + WATERMARK_RECORDS - self._since_watermark) <= len(records):
            self.times.emit(self, records[done:until], times[done:until] if times is not None else None)
            self._emit_periodic()
            done = until
        if done:
            records, times = records[done:], times[done:] if times is not None else None
        if records:
            self.times.emit(self, records, times)
            self._since_watermark += len(records)

    def _timestamps(self, records: list[Any], timestamps: list[int] | None) -> list[int] | None:
        assign = self._assign
        if assign is None:
            return timestamps
        remaining = iter(records)
        try:
            times = [assign(record, old) for record, old in zip(remaining, timestamps or repeat(NO_TIMESTAMP))]  # noqa: B905
            if not set(map(type, times)) <= {int}:
                wrong = next(place for place, time in enumerate(times) if type(time) is not int)
                remaining = iter(records[wrong + 1 :])
                raise TypeError(f"a timestamp assigner must return an int (milliseconds), not {times[wrong]!r}")
            if times and not (min(times) >= MIN_WATERMARK and max(times) <= MAX_WATERMARK):
                wrong = next(place for place, time in enumerate(times) if not MIN_WATERMARK <= time <= MAX_WATERMARK)
                remaining = iter(records[wrong + 1 :])
                event_time("a timestamp", times[wrong])
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error
        return times

    # -- watermarks ---------------------------------------------------------------------------------------------------

    def process_watermark(self, watermark: int) -> None:
        """Pass on the last watermark only: this operator generates the others."""
        if watermark == MAX_WATERMARK:
            self.end_of_epoch()
            self._advance_to(watermark)
            self.output.emit_watermark(watermark)

    def end_of_epoch(self) -> None:
        if self._since_watermark:
            self._emit_periodic()
        if self.times.idle_timeout_ms is not None:
            self._epoch_ended_ms = self.context.clock.wall_ms()

    def _emit_periodic(self) -> None:
        """Emit a periodic watermark if its turn has come."""
        self._since_watermark = 0
        if self._turns.interval_ms and self._turns.comes(self.context.clock.wall_ms()):
            self.times.emit_periodic(self)

    def emit_lowest(self) -> None:
        """Emit the watermark up to which every split has come."""
        watermark = self.times.lowest()
        if watermark is not None and watermark > self.times.last_emitted and not self.context.batch:
            self.times.last_emitted = watermark
            self._advance_to(watermark)
            self.output.emit_watermark(watermark)

    def after_idle(self) -> None:
        """Go idle if every split is; else the active ones alone decide about the watermark."""
        if self.times.splits.all_idle():
            self._go_idle()
        else:
            self.emit_lowest()

    def _go_idle(self) -> None:
        if not self.times.idle:
            self.times.idle = True
            self.output.emit_idle()

    # -- the clock ----------------------------------------------------------------------------------------------------

    def next_due_ms(self) -> int | None:
        """Return when the stream becomes idle or a watermark is due. Between epochs this asks a custom generator."""
        if self.current_watermark == MAX_WATERMARK:
            return None
        due = [each for each in (self._idle_due_ms(), self._watermark_due_ms()) if each is not None]
        return min(due, default=None)

    def _idle_due_ms(self) -> int | None:
        timeout_ms = self.times.idle_timeout_ms
        return None if timeout_ms is None else self.times.splits.next_idle_ms(timeout_ms, self._epoch_ended_ms)

    def _watermark_due_ms(self) -> int | None:
        if self._turns.waits:
            return self._turns.next_ms
        return None if self.context.batch else self.times.due_ms(self._turns, self.context.clock)

    def on_processing_time(self, now_ms: int) -> None:
        times = self.times
        times.emit_due(self)
        if self._turns.waits and now_ms >= self._turns.next_ms:
            self._emit_periodic()
        if self.current_watermark == MAX_WATERMARK:
            return
        if times.idle_timeout_ms is not None and times.splits.mark_quiet_idle(times.idle_timeout_ms):
            self.after_idle()
        elif not times.splits.splits():  # a reader without splits must not hold back the others
            self._go_idle()
