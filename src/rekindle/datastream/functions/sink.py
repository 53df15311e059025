"""Sink functions, which are called with each record."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

from rekindle.common.java_names import RefusesJavaNames
from rekindle.common.java_text import printed_text
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.functions.function import Function, RichFunction, RuntimeContext
from rekindle.errors import JavaOnlyError


class SinkFunction(RefusesJavaNames, Function):
    """Writes each record to an external system.

    >>> class Remember(SinkFunction):
    ...     seen = []
    ...     def invoke(self, value, context):
    ...         self.seen.append(value)
    """

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        """Refuse the name of a Java class, which PyFlink's constructor takes."""
        if cls is SinkFunction and arguments and isinstance(arguments[0], str):
            raise JavaOnlyError(f"SinkFunction({arguments[0]!r})", "write the sink in Python")
        return super().__new__(cls)

    class Context(ABC):
        """The context of the record being written."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the record's timestamp in milliseconds, or None if it has none."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the watermark of this operator, in milliseconds."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the wall clock, in milliseconds."""

    @abstractmethod
    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Write one record."""


class RichSinkFunction(SinkFunction, RichFunction):
    """Flink's name for a sink function with `open` and `close`. Here every sink function has them.

    >>> issubclass(RichSinkFunction, SinkFunction)
    True
    """


class PrintSinkFunction(SinkFunction):
    """Prints each record with Flink's prefix `identifier:subtask> `, or with the parts of it that apply.

    >>> PrintSinkFunction.prefix("a", subtask=1, parallelism=2), PrintSinkFunction.prefix(None, 0, parallelism=1)
    ('a:2> ', '')
    """

    def __init__(self, sink_identifier: str | None = None, type_info: TypeInformation | None = None) -> None:
        self._identifier = sink_identifier
        self._type_info = type_info
        self._text: Callable[[Any], str] = str
        self._prefix = ""

    @staticmethod
    def prefix(identifier: str | None, subtask: int, parallelism: int) -> str:
        """Return the prefix of each printed record."""
        parts = [] if not identifier else [identifier]
        if parallelism > 1:
            parts.append(str(subtask + 1))
        return ":".join(parts) + "> " if parts else ""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Build the prefix from the subtask's index."""
        self._text = printed_text(self._type_info)
        self._prefix = self.prefix(
            self._identifier,
            runtime_context.get_index_of_this_subtask(),
            runtime_context.get_number_of_parallel_subtasks(),
        )

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Print one record with one write, so that lines of several subtasks do not mix."""
        # In a slot, standard output adds the task's name to each line. Printed records have their own prefix instead.
        write = getattr(sys.stdout, "write_unlabelled", sys.stdout.write)
        write(f"{self._prefix}{self._text(value)}\n")
