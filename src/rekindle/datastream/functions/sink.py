"""Sinks written as a function that is invoked with each record."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import Any

from rekindle.datastream.functions.function import Function, RichFunction, RuntimeContext


class SinkFunction(Function):
    """Takes each record out of the job.

    >>> class Remember(SinkFunction):
    ...     seen = []
    ...     def invoke(self, value, context):
    ...         self.seen.append(value)
    """

    class Context(ABC):
        """What a sink may ask about the record it is given."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's timestamp in milliseconds; None if it has none."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The event-time watermark of this operator."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The wall clock."""

    @abstractmethod
    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Write one record."""


class RichSinkFunction(SinkFunction, RichFunction):
    """Flink's name for a sink function with `open` and `close`, which all have here.

    >>> issubclass(RichSinkFunction, SinkFunction)
    True
    """


class PrintSinkFunction(SinkFunction):
    """Prints each record with Flink's prefix: `identifier:subtask> `, without what is not needed.

    >>> PrintSinkFunction.prefix("a", subtask=1, parallelism=2), PrintSinkFunction.prefix(None, 0, parallelism=1)
    ('a:2> ', '')
    """

    def __init__(self, sink_identifier: str | None = None) -> None:
        self._identifier = sink_identifier
        self._prefix = ""

    @staticmethod
    def prefix(identifier: str | None, subtask: int, parallelism: int) -> str:
        """What stands before each record."""
        parts = [] if not identifier else [identifier]
        if parallelism > 1:
            parts.append(str(subtask + 1))
        return ":".join(parts) + "> " if parts else ""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Find out which subtask this is."""
        self._prefix = self.prefix(
            self._identifier,
            runtime_context.get_index_of_this_subtask(),
            runtime_context.get_number_of_parallel_subtasks(),
        )

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Print one record as one write, so that lines of several subtasks do not mix."""
        # In a slot, standard output puts the task's name before each line; these lines have a prefix of their own.
        write = getattr(sys.stdout, "write_unlabelled", sys.stdout.write)
        write(f"{self._prefix}{value}\n")
