"""The event time of a stream by split, and the turns in which its watermarks are emitted.

A reader and the timestamps operator behind it share one `SourceTimes`: the reader says which splits there are, which
split the next records are of and which splits have nothing to read; the operator emits watermarks by it. Times come
from the records, or from a generator of the user's for each split. Turns come by the number of records or by the clock.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from rekindle.clock import Clock
from rekindle.common.watermark_strategy import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    NO_TIMESTAMP,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
    event_time,
)
from rekindle.runtime.operators.output import OperatorFailure, Output
from rekindle.runtime.operators.split_times import OTHER_SUBTASKS, WHOLE_SOURCE, SplitTimes


class Turns:
    """Turns for periodic watermarks: after a number of records and at the end of each epoch (I1)."""

    #: Whether a watermark waits until its interval is over.
    waits = False

    def __init__(self, interval_ms: int) -> None:
        self.interval_ms = interval_ms
        self.next_ms = 0

    def begin(self, now_ms: int) -> None:
        """Begin an interval."""
        self.next_ms = now_ms + self.interval_ms

    def restored(self) -> None:
        """Continue after a restore: a watermark may have waited."""

    def comes(self, now_ms: int) -> bool:
        """Whether a watermark may be emitted now; then the next interval begins."""
        self.begin(now_ms)
        return True


class ClockTurns(Turns):
    """Turns by the clock: at most one in an interval."""

    def restored(self) -> None:
        self.waits = True

    def comes(self, now_ms: int) -> bool:
        self.waits = now_ms < self.next_ms
        return not self.waits and super().comes(now_ms)


class WatermarkEmitter(Protocol):
    """The operator that emits records and watermarks as the times say."""

    name: str
    output: Output

    def emit_lowest(self) -> None:
        """Emit the watermark up to which every split has come."""

    def after_idle(self) -> None:
        """Go idle if every split is; else the active ones alone decide about the watermark."""


class SourceTimes:
    """Times from the records: the watermark stays behind the latest timestamp of the split that is furthest behind."""

    #: Whether `due_ms` asks a generator of the user's for watermarks.
    asks_generator = False

    def __init__(self, strategy: WatermarkStrategy) -> None:
        self._makes_watermarks = strategy.kind != "none"
        # A generator says the watermark itself; else it stays this far behind the latest timestamp.
        self._behind_ms = 0 if strategy.kind == "custom" else strategy.max_out_of_orderness_ms + 1
        self.idle_timeout_ms = strategy.idle_timeout_ms
        self.alignment = strategy.alignment
        self.splits = SplitTimes()
        #: The split of the records that come next.
        self.split = WHOLE_SOURCE
        #: The watermark of the stream; the last one that these times gave; whether the stream is idle.
        self.watermark = MIN_WATERMARK
        self.last_emitted = MIN_WATERMARK
        self.idle = False

    # -- splits -------------------------------------------------------------------------------------------------------

    def set_splits(self, splits: Collection[str]) -> None:
        """Begin with these splits; those that were restored keep their event time."""
        self.splits.set_splits(splits)

    def add_split(self, split: str) -> None:
        """Begin with one more split: it holds back the watermark until it has records or is idle."""
        self.splits.add(split)

    def finish_splits(self, splits: Collection[str]) -> None:
        """Forget splits that have ended: the others decide about the watermark."""
        self.splits.finish(splits)

    def hold(self, held: bool) -> None:
        """While held, records do not advance the watermark: they are other subtasks' records in flight."""
        if held:
            self.split = OTHER_SUBTASKS
            self.add_split(OTHER_SUBTASKS)
        else:
            self.split = WHOLE_SOURCE
            self.finish_splits([OTHER_SUBTASKS])

    def splits_ahead_of(self, limit: int) -> set[str]:
        """Return the splits whose watermark is beyond `limit`."""
        return self.splits.ahead_of(limit + self._behind_ms)

    def holds_back(self) -> bool:
        """Whether other sources have to wait for this one: it is neither idle nor at its end."""
        return not self.idle and not self.splits.all_idle() and self.watermark < MAX_WATERMARK

    def lowest(self) -> int | None:
        """Return the watermark up to which every split has come; None if there is none yet, or never one."""
        lowest = self.splits.lowest()
        return lowest - self._behind_ms if lowest > MIN_WATERMARK and self._makes_watermarks else None

    def position(self) -> Any:
        """Return the latest timestamps and the last watermark: restored watermarks must not go back (I6)."""
        return [self.splits.position(), self.last_emitted]

    def seek(self, position: Any) -> None:
        """Continue from a snapshot."""
        times, self.last_emitted = position
        # Checkpoints from before there were times per split hold the latest timestamp of all records.
        self.splits.seek(times if isinstance(times, dict) else {WHOLE_SOURCE: times})
        self.watermark = self.last_emitted

    # -- records and watermarks ---------------------------------------------------------------------------------------

    def emit(self, emitter: WatermarkEmitter, records: list[Any], times: list[int] | None) -> None:
        """Emit records of the current split, and advance its time by them."""
        emitter.output.emit(records, times)
        self.splits.advance(self.split, MIN_WATERMARK if times is None else max(times))

    def emit_periodic(self, emitter: WatermarkEmitter) -> None:
        """Emit a periodic watermark."""
        emitter.emit_lowest()

    def due_ms(self, turns: Turns, clock: Clock) -> int | None:
        """Return when an epoch is needed for a watermark without records; None: never. Called between epochs."""
        return None

    def emit_due(self, emitter: WatermarkEmitter) -> None:
        """Emit the watermarks for which `due_ms` has asked for an epoch."""


class GeneratorTimes(SourceTimes):
    """Times from generators of the user's, one for each split."""

    asks_generator = True

    def __init__(self, strategy: WatermarkStrategy) -> None:
        super().__init__(strategy)
        assert strategy.generator_supplier is not None
        self._supplier = strategy.generator_supplier
        self._generators: dict[str, WatermarkGenerator] = {}
        self._generated: dict[str, _CollectedOutput] = {}  # the outputs of the generators between two epochs

    def set_splits(self, splits: Collection[str]) -> None:
        super().set_splits(splits)
        self._generators = {split: self._supplier() for split in splits}

    def add_split(self, split: str) -> None:
        super().add_split(split)
        self._generators.setdefault(split, self._supplier())

    def finish_splits(self, splits: Collection[str]) -> None:
        super().finish_splits(splits)
        for split in splits:
            self._generators.pop(split, None)

    def emit(self, emitter: WatermarkEmitter, records: list[Any], times: list[int] | None) -> None:
        """Pass each record to the split's generator; a watermark that it emits follows that record."""
        split, sent = self.split, 0
        self.splits.advance(split, MIN_WATERMARK)
        generator, collected = self._generators[split], _CollectedOutput()
        output = emitter.output
        try:
            for place, record in enumerate(records):
                generator.on_event(record, times[place] if times is not None else NO_TIMESTAMP, collected)
                if collected.watermark is not None:
                    output.emit(records[sent : place + 1], times[sent : place + 1] if times is not None else None)
                    sent = place + 1
                    self.splits.advance(split, collected.watermark)
                    emitter.emit_lowest()
                    collected.watermark = None
            if sent < len(records):
                output.emit(records[sent:], times[sent:] if times is not None else None)
        except OperatorFailure:
            raise
        except Exception as error:
            raise OperatorFailure(emitter.name) from error
        if collected.idle:
            self.splits.mark_idle(split)
            emitter.after_idle()

    def emit_periodic(self, emitter: WatermarkEmitter) -> None:
        self._emit_generated(emitter, self._asked())

    def due_ms(self, turns: Turns, clock: Clock) -> int | None:
        """Ask the generators once in an interval, and return now if they have news, else the next interval."""
        if not self._generators or turns.interval_ms == 0:
            return None
        now_ms = clock.wall_ms()
        if not self._generated and now_ms >= turns.next_ms:
            turns.begin(now_ms)
            asked = self._asked()
            if any(map(self._is_news, asked.values())):
                self._generated = asked
        return turns.next_ms if not self._generated else now_ms

    def emit_due(self, emitter: WatermarkEmitter) -> None:
        generated, self._generated = self._generated, {}
        self._emit_generated(emitter, generated)

    def _asked(self) -> dict[str, _CollectedOutput]:
        return {split: _asked(generator) for split, generator in self._generators.items()}

    def _is_news(self, generated: _CollectedOutput) -> bool:
        watermark = generated.watermark
        later = watermark is not None and watermark > self.last_emitted
        return later or generated.error is not None or (generated.idle and not self.idle)

    def _emit_generated(self, emitter: WatermarkEmitter, generated: dict[str, _CollectedOutput]) -> None:
        for split, output in generated.items():
            if output.error is not None:
                raise OperatorFailure(emitter.name) from output.error
            if output.watermark is not None:
                self.splits.advance(split, output.watermark)
                emitter.emit_lowest()
            if output.idle:
                self.splits.mark_idle(split)
                emitter.after_idle()


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


def _asked(generator: WatermarkGenerator) -> _CollectedOutput:
    """Return the periodic output of a generator, or its error."""
    collected = _CollectedOutput()
    try:
        generator.on_periodic_emit(collected)
    except Exception as error:
        collected.error = error
    return collected
