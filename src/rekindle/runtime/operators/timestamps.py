"""Timestamps and watermarks: `assign_timestamps_and_watermarks` and the watermark strategy of a source.

A watermark is emitted after a fixed number of records and at the end of each epoch, so that its place depends on the
cuts, not on the clock (I1), unless an interval is set. A custom generator is also asked once per interval while no
record comes (I4). Where a reader says which records are of which split, each split has an event time of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import repeat
from typing import Any, Final

from rekindle.common.watermark_strategy import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    NO_TIMESTAMP,
    Watermark,
    WatermarkAlignment,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
    event_time,
)
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.output import OperatorFailure, failed_record
from rekindle.runtime.operators.roles import EpochListener, Idling, Positioned, Timed
from rekindle.runtime.operators.split_times import OTHER_SUBTASKS, WHOLE_SOURCE, SplitTimes
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
        value = event_time("a watermark", getattr(watermark, "timestamp", watermark))
        self.watermark = value if self.watermark is None else max(self.watermark, value)

    def mark_idle(self) -> None:
        self.idle = True

    def mark_active(self) -> None:
        self.idle = False


class TimestampsOperator(Operator, Positioned, Timed, Idling, EpochListener):
    """Assigns timestamps and generates watermarks; of the watermarks upstream it passes on only the last one."""

    has_reader = False

    def __init__(self, node: OperatorNode, context: OperatorContext, strategy: WatermarkStrategy) -> None:
        super().__init__(node, context)
        self._strategy = strategy
        self._times = SplitTimes()
        self._generators: dict[str, WatermarkGenerator] = {}
        self._last_emitted = MIN_WATERMARK
        # A generator says the watermark itself; else it stays this far behind the latest timestamp.
        self._behind_ms = 0 if strategy.kind == "custom" else strategy.max_out_of_orderness_ms + 1
        self._idle_timeout_ms = strategy.idle_timeout_ms
        self._idle = False
        self._epoch_ended_ms = 0
        self._split = WHOLE_SOURCE  # of records that come without their split
        self._since_watermark = 0  # records of this epoch since its last watermark
        self._interval_ms = context.settings.auto_watermark_interval_ms
        self._by_clock = context.settings.auto_watermark_by_clock
        self._next_watermark_ms = 0
        self._watermark_waits = False  # until its interval is over
        self._generated: dict[str, _CollectedOutput] = {}  # the outputs of the generators between two epochs

    def open(self) -> None:
        assigner = self._strategy.timestamp_assigner
        self._assign: Callable[[Any, int], int] | None = (
            method_or_callable(assigner, "extract_timestamp") if assigner is not None else None
        )
        now_ms = self.context.clock.wall_ms()
        self._next_watermark_ms = now_ms + self._interval_ms
        self._epoch_ended_ms = now_ms
        self.set_splits(self._times.splits())

    # -- splits of a source -------------------------------------------------------------------------------------------

    def set_splits(self, splits: Collection[str]) -> None:
        """Begin with the splits of this subtask's reader; those that were restored keep their event time."""
        self._times.set_splits(splits)
        supplier = self._strategy.generator_supplier
        self._generators = {split: supplier() for split in splits} if supplier is not None else {}

    def add_split(self, split: str) -> None:
        """Begin with one more split: it holds back the watermark until it has records or is idle."""
        self._times.add(split)
        if self._strategy.generator_supplier is not None:
            self._generators.setdefault(split, self._strategy.generator_supplier())

    def finish_splits(self, splits: Collection[str]) -> None:
        """Forget splits that have ended: the others decide about the watermark."""
        self._times.finish(splits)
        for split in splits:
            self._generators.pop(split, None)

    @property
    def detects_idleness(self) -> bool:
        """Whether a split becomes idle when it has nothing to read for a time."""
        return self._idle_timeout_ms is not None

    def note_quiet(self, quiet: Collection[str], now_ms: int) -> None:
        """Note which splits have nothing to read now; the input of an operator that has no reader is one split."""
        self._times.note_quiet(quiet, now_ms)

    def hold_watermark(self, held: bool) -> None:
        """While held, records do not advance the watermark: they are other subtasks' records in flight."""
        if held:
            self._split = OTHER_SUBTASKS
            self.add_split(OTHER_SUBTASKS)
        else:
            self._split = WHOLE_SOURCE
            self.finish_splits([OTHER_SUBTASKS])

    @property
    def asks_generator(self) -> bool:
        """Whether `next_due_ms` asks a generator of the user's for watermarks."""
        return self._strategy.generator_supplier is not None

    @property
    def alignment(self) -> WatermarkAlignment | None:
        """The strategy's watermark alignment."""
        return self._strategy.alignment

    def splits_ahead_of(self, limit: int) -> set[str]:
        """Return the splits whose watermark is beyond `limit`."""
        return self._times.ahead_of(limit + self._behind_ms)

    def holds_back(self) -> bool:
        """Whether other sources have to wait for this one: it is neither idle nor at its end."""
        return not self._idle and not self._times.all_idle() and self.current_watermark < MAX_WATERMARK

    def process_splits(self, runs: Iterable[tuple[str, int]], records: list[Any], timestamps: list[int] | None) -> None:
        """Process a batch of which each run is of one split: (split, number of records)."""
        begin = 0
        for split, count in runs:
            times = None if timestamps is None else timestamps[begin : begin + count]
            self._process_run(split, records[begin : begin + count], times)
            begin += count

    def position(self) -> Any:
        """Return the latest timestamp and the last watermark: restored watermarks must not go back (I6)."""
        return [self._times.position(), self._last_emitted]

    def seek(self, position: Any) -> None:
        times, self._last_emitted = position
        # Checkpoints from before there were times per split hold the latest timestamp of all records.
        self._times.seek(times if isinstance(times, dict) else {WHOLE_SOURCE: times})
        self.current_watermark = self._last_emitted
        self._watermark_waits = self._by_clock

    def restore_watermark(self, watermark: int) -> None:
        super().restore_watermark(watermark)
        self._last_emitted = max(self._last_emitted, watermark)

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        self._process_run(self._split, records, timestamps)

    def _process_run(self, split: str, records: list[Any], timestamps: list[int] | None) -> None:
        """Process records of one split."""
        times = self._timestamps(records, timestamps)
        self._idle = False
        done = 0
        while (until := done + WATERMARK_RECORDS - self._since_watermark) <= len(records):
            self._emit_records(split, records[done:until], times[done:until] if times is not None else None)
            self._emit_periodic()
            done = until
        if done:
            records, times = records[done:], times[done:] if times is not None else None
        if records:
            self._emit_records(split, records, times)
            self._since_watermark += len(records)

    def end_of_epoch(self) -> None:
        if self._since_watermark:
            self._emit_periodic()
        if self._idle_timeout_ms is not None:
            self._epoch_ended_ms = self.context.clock.wall_ms()

    def _emit_records(self, split: str, records: list[Any], times: list[int] | None) -> None:
        if self._strategy.generator_supplier is not None:
            self._times.advance(split, MIN_WATERMARK)
            self._generate(split, records, times)
            return
        self.output.emit(records, times)
        self._times.advance(split, MIN_WATERMARK if times is None else max(times))

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
        if self._strategy.generator_supplier is not None:
            self._emit_generated({split: _asked(generator) for split, generator in self._generators.items()})
        else:
            self._emit_lowest()

    def _emit_lowest(self) -> None:
        """Emit the watermark up to which every split has come."""
        lowest = self._times.lowest()
        if lowest > MIN_WATERMARK and self._strategy.kind != "none":
            self._emit(lowest - self._behind_ms)

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

    def _generate(self, split: str, records: list[Any], times: list[int] | None) -> None:
        """Pass each record to the split's generator; a watermark that it emits follows that record."""
        generator, sent = self._generators[split], 0
        collected = _CollectedOutput()
        try:
            for place, record in enumerate(records):
                generator.on_event(record, times[place] if times is not None else NO_TIMESTAMP, collected)
                if collected.watermark is not None:
                    self.output.emit(records[sent : place + 1], times[sent : place + 1] if times is not None else None)
                    sent = place + 1
                    self._generated_watermark(split, collected.watermark)
                    collected.watermark = None
            if sent < len(records):
                self.output.emit(records[sent:], times[sent:] if times is not None else None)
        except OperatorFailure:
            raise
        except Exception as error:
            raise OperatorFailure(self.name) from error
        if collected.idle:
            self._split_idle(split)

    def _generated_watermark(self, split: str, watermark: int) -> None:
        self._times.advance(split, watermark)
        self._emit_lowest()

    def _split_idle(self, split: str) -> None:
        self._times.mark_idle(split)
        self._after_idle()

    def _after_idle(self) -> None:
        """Go idle if every split is; else the active ones alone decide about the watermark."""
        if self._times.all_idle():
            self._go_idle()
        else:
            self._emit_lowest()

    def _emit_generated(self, generated: dict[str, _CollectedOutput]) -> None:
        for split, output in generated.items():
            if output.error is not None:
                raise OperatorFailure(self.name) from output.error
            if output.watermark is not None:
                self._generated_watermark(split, output.watermark)
            if output.idle:
                self._split_idle(split)

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
        if self._idle_timeout_ms is None:
            return None
        return self._times.next_idle_ms(self._idle_timeout_ms, self._epoch_ended_ms)

    def _watermark_due_ms(self) -> int | None:
        if self._watermark_waits:
            return self._next_watermark_ms
        if not self._generators or self._interval_ms == 0 or self.context.batch:
            return None
        now_ms = self.context.clock.wall_ms()
        if not self._generated and now_ms >= self._next_watermark_ms:
            self._next_watermark_ms = now_ms + self._interval_ms
            asked = {split: _asked(generator) for split, generator in self._generators.items()}
            if any(map(self._is_news, asked.values())):
                self._generated = asked
        return self._next_watermark_ms if not self._generated else now_ms

    def _is_news(self, generated: _CollectedOutput) -> bool:
        watermark = generated.watermark
        later = watermark is not None and watermark > self._last_emitted
        return later or generated.error is not None or (generated.idle and not self._idle)

    def on_processing_time(self, now_ms: int) -> None:
        generated, self._generated = self._generated, {}
        if generated:
            self._emit_generated(generated)
        if self._watermark_waits and now_ms >= self._next_watermark_ms:
            self._emit_periodic()
        if self.current_watermark == MAX_WATERMARK:
            return
        if self._idle_timeout_ms is not None and self._times.mark_quiet_idle(self._idle_timeout_ms):
            self._after_idle()
        elif not self._times.splits():  # a reader without splits must not hold back the others
            self._go_idle()


def _asked(generator: WatermarkGenerator) -> _CollectedOutput:
    """Return the periodic output of a generator, or its error."""
    collected = _CollectedOutput()
    try:
        generator.on_periodic_emit(collected)
    except Exception as error:
        collected.error = error
    return collected
