"""Where an operator's records go: the consumers behind it, its side outputs, and batches of bounded size (I5).

There are two ways in. An operator that loops over records writes the loop as a generator of results and gives it to
`Collector.drain`: the generator stands still while a full batch is handed on, whatever one element makes. Results from
deep inside (windows, asynchronous calls) are added one by one, and flushed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import Any, Protocol

from rekindle.common.watermark_strategy import NO_TIMESTAMP
from rekindle.datastream.output_tag import OutputTag
from rekindle.errors import RekindleError
from rekindle.runtime.isolation import Isolate

Emit = Callable[[list[Any], list[int] | None], None]


class Consumer(Protocol):
    """Whoever takes an operator's output: the next operator of the chain, or an edge's writer."""

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
    """The failure at the record that `remaining`, an iterator over `records`, handed out last."""
    left = remaining.__length_hint__()  # type: ignore[attr-defined]
    place = len(records) - left - 1
    return OperatorFailure(operator, records[place], True) if place >= 0 else OperatorFailure(operator)


def _drop(records: list[Any], timestamps: list[int] | None) -> None:
    """Output that nobody takes."""


def _emit_to(
    consumers: list[Consumer], isolate: Isolate | None, records: list[Any], timestamps: list[int] | None
) -> None:
    """To all of them, so that none sees what another does to a record."""
    *others, last = consumers
    for consumer in others:
        consumer.emit(records if isolate is None else list(map(isolate, records)), timestamps)
    last.emit(records, timestamps)


class Output:
    """An operator's outputs: the main one and the tagged ones, each with any number of consumers."""

    def __init__(
        self, isolate: Isolate | None = None, side_isolates: Mapping[str, Isolate | None] | None = None
    ) -> None:
        self._isolate = isolate
        self._side_isolates = side_isolates or {}
        self._consumers: list[Consumer] = []
        self._tagged: dict[str, list[Consumer]] = {}
        self.emit: Emit = _drop

    def add(self, consumer: Consumer, tag: str | None = None) -> None:
        """Connect a consumer."""
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

    def _everyone(self) -> Iterator[Consumer]:
        yield from self._consumers
        for consumers in self._tagged.values():
            yield from consumers

    def emit_watermark(self, watermark: int) -> None:
        """Pass a watermark on, to side outputs too."""
        for consumer in self._everyone():
            consumer.emit_watermark(watermark)

    def emit_idle(self) -> None:
        """Pass idleness on."""
        for consumer in self._everyone():
            consumer.emit_idle()

    def emit_end(self) -> None:
        """Pass the end of input on."""
        for consumer in self._everyone():
            consumer.emit_end()


#: The most records that an operator hands on at a time.
OUTPUT_RECORDS = 1 << 15

#: Notes the time of the result that is yielded next.
Stamp = Callable[[int], None]


class Collector:
    """What one operator emits. `tagged`: `(tag, value)` pairs belong to side outputs."""

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
        """Hand on all that a loop yields; it stamps each result right before it yields it.

        Without `stamped` the results have no times, as the records that they come from.
        """
        times: list[int] = []
        results = self.isolated(loop(times.append))
        while batch := list(islice(results, OUTPUT_RECORDS)):
            self._emit(batch, times[:] if stamped else None)
            times.clear()

    def applied(self, function: Callable[[Any], Any], records: Iterator[Any]) -> list[Any]:
        """What a function makes of each record, isolated; as many as there are records."""
        isolate = self._isolate
        if isolate is None:
            return [function(record) for record in records]
        return [isolate(function(record)) for record in records]

    def isolated(self, results: Iterable[Any]) -> Iterator[Any]:
        """Results that nothing changes any more once the next one is asked for."""
        return iter(results) if self._isolate is None else map(self._isolate, results)

    # -- results as they come -----------------------------------------------------------------------------------------

    def add(self, value: Any, time: int) -> None:
        """One result."""
        self.add_untouched(value if self._isolate is None else self._isolate(value), time)

    def add_untouched(self, value: Any, time: int) -> None:
        """One that goes on as it came: it needs no isolation."""
        self._values.append(value)
        self._times.append(time)
        if len(self._values) >= OUTPUT_RECORDS:
            self.flush()

    def add_all(self, values: Iterable[Any] | None, time: int) -> None:
        """What a function returned or yields, one by one: in between it may add to a side output. None is nothing."""
        if values is not None:
            for value in self.isolated(values):
                self.add_untouched(value, time)

    def extend(self, values: Iterable[Any], time: int) -> None:
        """Any number of results of one time, which need no isolation any more; nothing is added in between."""
        remaining = iter(values)
        while part := list(islice(remaining, OUTPUT_RECORDS)):
            if len(self._values) + len(part) > OUTPUT_RECORDS:
                self.flush()
            self._values += part
            self._times.extend(repeat(time, len(part)))

    def flush(self) -> None:
        """Hand on what was added. A failure in there comes again: the function that adds may have swallowed it."""
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
