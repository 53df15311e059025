"""An operator's output: its consumers, its side outputs, and batches of bounded size (I5).

An operator emits in one of two ways. If it loops over records, it writes the loop as a generator of results and gives
the generator to `Collector.drain`, which pauses it while a full batch is emitted, however many results one record has.
Results that arise deep inside the operator (windows, asynchronous calls) are added one by one, then flushed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import Any, Protocol

from rekindle.common.watermark_strategy import NO_TIMESTAMP
from rekindle.datastream.output_tag import OutputTag
from rekindle.errors import RekindleError
from rekindle.runtime.copy_on_emit import Isolate

Emit = Callable[[list[Any], list[int] | None], None]


class Consumer(Protocol):
    """A receiver of an operator's output: the next operator of the chain, or the writer of an edge."""

    def emit(self, records: list[Any], timestamps: list[int] | None) -> None: ...
    def emit_watermark(self, watermark: int) -> None: ...
    def emit_idle(self) -> None: ...
    def emit_end(self) -> None: ...


class OperatorFailure(RekindleError):
    """An error inside an operator; `__cause__` is the user's exception."""

    def __init__(self, operator: str, record: Any = None, has_record: bool = False) -> None:
        super().__init__(f"operator '{operator}' failed")
        self.operator = operator
        self.record = record
        self.has_record = has_record


def failed_record(operator: str, records: Sequence[Any], remaining: Iterator[Any]) -> OperatorFailure:
    """Return the failure at the last record that `remaining`, an iterator over `records`, has returned."""
    left = remaining.__length_hint__()  # type: ignore[attr-defined]
    place = len(records) - left - 1
    return OperatorFailure(operator, records[place], True) if place >= 0 else OperatorFailure(operator)


def _discard(records: list[Any], timestamps: list[int] | None) -> None:
    """Discard output that has no consumer."""


def _emit_to(
    consumers: list[Consumer], isolate: Isolate | None, records: list[Any], timestamps: list[int] | None
) -> None:
    """Emit a batch to each consumer; the consumers do not share records that can change."""
    *others, last = consumers
    for consumer in others:
        consumer.emit(records if isolate is None else list(map(isolate, records)), timestamps)
    last.emit(records, timestamps)


class CountedConsumer:
    """An operator of the same chain, with the number of records that were handed to it over one edge."""

    __slots__ = ("_emit", "emit_end", "emit_idle", "emit_watermark", "records")

    def __init__(self, consumer: Consumer) -> None:
        self.records = 0
        self._emit = consumer.emit
        self.emit_watermark = consumer.emit_watermark
        self.emit_idle = consumer.emit_idle
        self.emit_end = consumer.emit_end

    def emit(self, records: list[Any], timestamps: list[int] | None) -> None:
        """Count a batch and hand it on."""
        self.records += len(records)
        self._emit(records, timestamps)


class Output:
    """The outputs of an operator: the main output and the tagged ones, each with any number of consumers."""

    def __init__(
        self, isolate: Isolate | None = None, side_isolates: Mapping[str, Isolate | None] | None = None
    ) -> None:
        self._isolate = isolate
        self._side_isolates = side_isolates or {}
        self._consumers: list[Consumer] = []
        self._tagged: dict[str, list[Consumer]] = {}
        self.emit: Emit = _discard

    def add(self, consumer: Consumer, tag: str | None = None) -> None:
        """Connect a consumer to the main output, or to the side output of a tag."""
        if tag is not None:
            self._tagged.setdefault(tag, []).append(consumer)
            return
        self._consumers.append(consumer)
        self.emit = self._consumers[0].emit if len(self._consumers) == 1 else self._emit_all

    def _emit_all(self, records: list[Any], timestamps: list[int] | None) -> None:
        _emit_to(self._consumers, self._isolate, records, timestamps)

    def emit_mixed(self, records: list[Any], timestamps: list[int] | None) -> None:
        """Emit the results of a process function, in which `(tag, value)` pairs belong to side outputs."""
        if OutputTag.created:
            records, timestamps = self._split_tagged(records, timestamps)
        if records:
            self.emit(records, timestamps)

    def _split_tagged(self, records: list[Any], timestamps: list[int] | None) -> tuple[list[Any], list[int] | None]:
        if tuple not in set(map(type, records)):
            return records, timestamps
        kept: list[Any] = []
        kept_times: list[int] = []
        by_tag: dict[str, tuple[list[Any], list[int]]] = {}
        for record, time in zip(records, timestamps or repeat(NO_TIMESTAMP)):  # noqa: B905 (repeat is endless)
            if type(record) is tuple and len(record) == 2 and type(record[0]) is OutputTag:
                tag, value = record
                aside = by_tag.get(tag.tag_id)
                if aside is None:
                    aside = by_tag[tag.tag_id] = [], []
                aside[0].append(value)
                aside[1].append(time)
            else:
                kept.append(record)
                kept_times.append(time)
        for tag_id, (values, times) in by_tag.items():
            if tag_id in self._tagged:
                isolate = self._side_isolates.get(tag_id)
                _emit_to(self._tagged[tag_id], isolate, values, times if timestamps is not None else None)
        return kept, kept_times if timestamps is not None else None

    def _all_consumers(self) -> Iterator[Consumer]:
        yield from self._consumers
        for consumers in self._tagged.values():
            yield from consumers

    def emit_watermark(self, watermark: int) -> None:
        """Pass a watermark on to every consumer, those of side outputs included."""
        for consumer in self._all_consumers():
            consumer.emit_watermark(watermark)

    def emit_idle(self) -> None:
        """Pass idleness on to every consumer."""
        for consumer in self._all_consumers():
            consumer.emit_idle()

    def emit_end(self) -> None:
        """Pass the end of the input on to every consumer."""
        for consumer in self._all_consumers():
            consumer.emit_end()


#: The most records in one emitted batch.
OUTPUT_RECORDS = 1 << 15

#: Records the timestamp of the result that is yielded next.
Stamp = Callable[[int], None]


class Collector:
    """Collects the results of one operator into batches. `tagged`: `(tag, value)` pairs belong to side outputs."""

    __slots__ = ("_failure", "_isolate", "_output", "_tagged", "_times", "_values")

    def __init__(self, output: Output, isolate: Isolate | None, tagged: bool) -> None:
        self._output = output
        self._isolate = isolate
        self._tagged = tagged
        self._values: list[Any] = []
        self._times: list[int] = []
        self._failure: BaseException | None = None

    # -- a loop's results ---------------------------------------------------------------------------------------------

    def drain(self, loop: Callable[[Stamp], Iterator[Any]], stamped: bool) -> None:
        """Emit all results that a loop yields; the loop stamps each result right before it yields it.

        If `stamped` is False, the results have no timestamps, as their input records have none.
        """
        times: list[int] = []
        results = self.isolated(loop(times.append))
        while batch := list(islice(results, OUTPUT_RECORDS)):
            self._emit(batch, times[:] if stamped else None)
            times.clear()

    def applied(self, function: Callable[[Any], Any], records: Iterator[Any]) -> list[Any]:
        """Apply a function to each record and return the isolated results, one per record."""
        isolate = self._isolate
        if isolate is None:
            return [function(record) for record in records]
        return [isolate(function(record)) for record in records]

    def isolated(self, results: Iterable[Any]) -> Iterator[Any]:
        """Isolate results: user code cannot change a result after it has yielded it."""
        return iter(results) if self._isolate is None else map(self._isolate, results)

    # -- results as they come -----------------------------------------------------------------------------------------

    def add(self, value: Any, time: int) -> None:
        """Add one result."""
        self.add_without_isolation(value if self._isolate is None else self._isolate(value), time)

    def add_without_isolation(self, value: Any, time: int) -> None:
        """Add one result that needs no isolation."""
        self._values.append(value)
        self._times.append(time)
        if len(self._values) >= OUTPUT_RECORDS:
            self.flush()

    def add_all(self, values: Iterable[Any] | None, time: int) -> None:
        """Add the results that a function returned or yields (None: none); it may add to side outputs meanwhile."""
        if values is not None:
            for value in self.isolated(values):
                self.add_without_isolation(value, time)

    def extend(self, values: Iterable[Any], time: int) -> None:
        """Add any number of results with the same timestamp that need no isolation."""
        remaining = iter(values)
        while part := list(islice(remaining, OUTPUT_RECORDS)):
            if len(self._values) + len(part) > OUTPUT_RECORDS:
                self.flush()
            self._values += part
            self._times.extend(repeat(time, len(part)))

    def flush(self) -> None:
        """Emit the results that were added.

        After a failure every later flush raises it again: user code that adds results may have swallowed it.
        """
        values, times = self._values, self._times
        self._values, self._times = [], []
        if self._failure is not None:
            raise self._failure
        if not values:
            return
        unstamped = times[0] == NO_TIMESTAMP and times.count(NO_TIMESTAMP) == len(times)
        try:
            self._emit(values, None if unstamped else times)
        except BaseException as failure:
            self._failure = failure
            raise

    def _emit(self, records: list[Any], timestamps: list[int] | None) -> None:
        if self._tagged:
            self._output.emit_mixed(records, timestamps)
        else:
            self._output.emit(records, timestamps)
