"""Where an operator's results go: isolated, each with its time, and handed on in batches of bounded size (I5).

There are two ways in. An operator that loops over records writes the loop as a generator of results and gives it to
`drain`: the generator stands still while a full batch is handed on, whatever one element makes. What comes from deep
inside (windows, asynchronous calls) is added as it comes, and flushed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

from rekindle.common.watermark_strategy import NO_TIMESTAMP
from rekindle.runtime.isolation import Isolate

if TYPE_CHECKING:
    from rekindle.runtime.operators.base import Output

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
