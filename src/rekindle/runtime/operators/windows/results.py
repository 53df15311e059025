"""What windows gave, on its way to the operators after this one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any

from rekindle.runtime.isolation import Isolate
from rekindle.runtime.operators.base import OUTPUT_RECORDS, Output


class Results:
    """Collects results and their timestamps, and hands them on in batches of bounded size (I5)."""

    __slots__ = ("_isolate", "_output", "times", "values")

    def __init__(self, output: Output, isolate: Isolate | None) -> None:
        self._output = output
        self._isolate = isolate
        self.values: list[Any] = []
        self.times: list[int] = []

    def add(self, value: Any, time: int) -> None:
        """One result; `(tag, value)` goes to a side output."""
        self.values.append(value if self._isolate is None else self._isolate(value))
        self.times.append(time)

    def add_all(self, values: Iterable[Any] | None, time: int) -> None:
        """What a window function returned or yields."""
        if values is None:
            return
        for value in values:
            self.add(value, time)
            if len(self.values) >= OUTPUT_RECORDS:
                self.flush()

    def add_many(self, values: list[Any], time: int) -> None:
        """Results of one time, of any number."""
        if self._isolate is not None:
            values = list(map(self._isolate, values))
        for begin in range(0, len(values), OUTPUT_RECORDS):
            part = values[begin : begin + OUTPUT_RECORDS]
            self.values.extend(part)
            self.times.extend(repeat(time, len(part)))
            if len(self.values) >= OUTPUT_RECORDS:
                self.flush()

    def add_untouched(self, value: Any, time: int) -> None:
        """An element that goes on as it came."""
        self.values.append(value)
        self.times.append(time)

    def flush(self) -> None:
        """Hand on what there is."""
        if self.values:
            values, times = self.values, self.times
            self.values, self.times = [], []
            self._output.emit_mixed(values, times)
