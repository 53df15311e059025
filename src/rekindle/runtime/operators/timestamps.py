"""Timestamps and watermarks: `assign_timestamps_and_watermarks` and the watermark strategy of a source.

A watermark is emitted after a fixed number of records and at the end of each epoch, so that its place depends on the
cuts, not on the clock (I1), unless an interval is set. A custom generator is also asked once per interval while no
record comes (I4).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any, Final

from rekindle.common.watermark_strategy import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    NO_TIMESTAMP,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.output import OperatorFailure, failed_record
from rekindle.runtime.operators.roles import EpochListener, Positioned, Timed
from rekindle.runtime.operators.stateless import method_or_callable

#: How many records of an epoch pass between two watermarks.
WATERMARK_RECORDS: Final = 4096


class _CollectedOutput(WatermarkOutput):
    """Collects the watermarks and the idleness of a custom generator."""

    def __init__(self) -> None:
        self.watermark: int | None = None
        self.idle = False
        self.error: Exception | None = None

    def emit_watermark(self, watermark: Watermark | int) -> None:
        value = watermark if isinstance(watermark, int) else watermark.timestamp
        self.watermark = value if self.watermark is None else max(self.watermark, value)

    def mark_idle(self) -> None:
        self.idle = True

    def mark_active(self) -> None:
        self.idle = False


class TimestampsOperator(Operator, Positioned, Timed, EpochListener):
    """Assigns timestamps and generates watermarks; of the watermarks upstream it passes on only the last one."""

    def __init__(self, node: OperatorNode, context: OperatorContext, strategy: WatermarkStrategy) -> None:
        super().__init__(node, context)
        self._strategy = strategy
        self._max_timestamp = MIN_WATERMARK
        self._last_emitted = MIN_WATERMARK
        self._idle_timeout_ms = strategy.idle_timeout_ms
        self._last_activity_ms = 0
        self._idle = False
        self._since_watermark = 0  # records of this epoch since its last watermark
        self._interval_ms = context.settings.auto_watermark_interval_ms
        self._by_clock = context.settings.auto_watermark_by_clock
        self._next_watermark_ms = 0
        self._watermark_waits = False  # until its interval is over
        self._generated: _CollectedOutput | None = None  # the output of the generator between two epochs

    def open(self) -> None:
        assigner = self._strategy.timestamp_assigner
        self._assign: Callable[[Any, int], int] | None = (
            method_or_callable(assigner, "extract_timestamp") if assigner is not None else None
        )
        supplier = self._strategy.generator_supplier
        self._generator = supplier() if supplier is not None else None
        self._last_activity_ms = self.context.clock.wall_ms()
        self._next_watermark_ms = self._last_activity_ms + self._interval_ms

    def position(self) -> Any:
        """Return the latest timestamp and the last watermark: restored watermarks must not go back (I6)."""
        return [self._max_timestamp, self._last_emitted]

    def seek(self, position: Any) -> None:
        self._max_timestamp, self._last_emitted = position
        self.current_watermark = self._last_emitted
        self._watermark_waits = self._by_clock

    def restore_watermark(self, watermark: int) -> None:
        super().restore_watermark(watermark)
        self._last_emitted = max(self._last_emitted, watermark)

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        times = self._timestamps(records, timestamps)
        self._idle = False
        if self._idle_timeout_ms is not None:
            self._last_activity_ms = self.context.clock.wall_ms()
        done = 0
        while (until := done + WATERMARK_RECORDS - self._since_watermark) <= len(records):
            self._emit_records(records[done:until], times[done:until] if times is not None else None)
            self._emit_periodic()
            done = until
        if done:
            records, times = records[done:], times[done:] if times is not None else None
        if records:
            self._emit_records(records, times)
            self._since_watermark += len(records)

    def end_of_epoch(self) -> None:
        if self._since_watermark:
            self._emit_periodic()

    def _emit_records(self, records: list[Any], times: list[int] | None) -> None:
        if self._generator is not None:
            self._generate(records, times)
            return
        self.output.emit(records, times)
        if times is not None:
            latest = max(times)
            self._max_timestamp = max(self._max_timestamp, latest)

    def _emit_periodic(self) -> None:
        """Emit a periodic watermark, unless the interval since the last one is not over."""
        self._since_watermark = 0
        if self._interval_ms == 0:
            return
        now_ms = self.context.clock.wall_ms()
        self._watermark_waits = self._by_clock and now_ms < self._next_watermark_ms
        if self._watermark_waits:
            return
        self._next_watermark_ms = now_ms + self._interval_ms
        if self._generator is not None:
            self._emit_generated(self._ask_generator(self._generator))
        elif self._strategy.kind != "none" and self._max_timestamp > MIN_WATERMARK:
            self._emit(self._max_timestamp - self._strategy.max_out_of_orderness_ms - 1)

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
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error
        return times

    def _generate(self, records: list[Any], times: list[int] | None) -> None:
        """Pass each record to a custom generator; a watermark that it emits follows that record."""
        generator, sent = self._generator, 0
        collected = _CollectedOutput()
        assert generator is not None
        try:
            for place, record in enumerate(records):
                generator.on_event(record, times[place] if times is not None else NO_TIMESTAMP, collected)
                if collected.watermark is not None:
                    self.output.emit(records[sent : place + 1], times[sent : place + 1] if times is not None else None)
                    sent = place + 1
                    self._emit(collected.watermark)
                    collected.watermark = None
            if sent < len(records):
                self.output.emit(records[sent:], times[sent:] if times is not None else None)
        except OperatorFailure:
            raise
        except Exception as error:
            raise OperatorFailure(self.name) from error
        if collected.idle:
            self._go_idle()

    def _ask_generator(self, generator: WatermarkGenerator) -> _CollectedOutput:
        collected = _CollectedOutput()
        try:
            generator.on_periodic_emit(collected)
        except Exception as error:
            collected.error = error
        return collected

    def _emit_generated(self, generated: _CollectedOutput) -> None:
        if generated.error is not None:
            raise OperatorFailure(self.name) from generated.error
        if generated.watermark is not None:
            self._emit(generated.watermark)
        if generated.idle:
            self._go_idle()

    def _emit(self, watermark: int) -> None:
        if watermark > self._last_emitted and not self.context.batch:
            self._last_emitted = watermark
            self.current_watermark = watermark
            self.output.emit_watermark(watermark)

    def process_watermark(self, watermark: int) -> None:
        """Pass on the last watermark only: this operator generates the others."""
        if watermark == MAX_WATERMARK:
            self.end_of_epoch()
            self.current_watermark = watermark
            self.output.emit_watermark(watermark)

    def _go_idle(self) -> None:
        if not self._idle:
            self._idle = True
            self.output.emit_idle()

    def next_due_ms(self) -> int | None:
        """Return when the stream becomes idle or a watermark is due. Between epochs this asks a custom generator."""
        if self.current_watermark == MAX_WATERMARK:
            return None
        due = [each for each in (self._idle_due_ms(), self._watermark_due_ms()) if each is not None]
        return min(due, default=None)

    def _idle_due_ms(self) -> int | None:
        if self._idle_timeout_ms is None or self._idle:
            return None
        return self._last_activity_ms + self._idle_timeout_ms

    def _watermark_due_ms(self) -> int | None:
        if self._watermark_waits:
            return self._next_watermark_ms
        if self._generator is None or self._interval_ms == 0 or self.context.batch:
            return None
        now_ms = self.context.clock.wall_ms()
        if self._generated is None and now_ms >= self._next_watermark_ms:
            self._next_watermark_ms = now_ms + self._interval_ms
            generated = self._ask_generator(self._generator)
            news = generated.watermark is not None and generated.watermark > self._last_emitted
            if news or generated.error is not None or (generated.idle and not self._idle):
                self._generated = generated
        return self._next_watermark_ms if self._generated is None else now_ms

    def on_processing_time(self, now_ms: int) -> None:
        generated, self._generated = self._generated, None
        if generated is not None:
            self._emit_generated(generated)
        if self._watermark_waits and now_ms >= self._next_watermark_ms:
            self._emit_periodic()
        idle_due_ms = self._idle_due_ms()
        if idle_due_ms is not None and now_ms >= idle_due_ms and self.current_watermark != MAX_WATERMARK:
            self._go_idle()
