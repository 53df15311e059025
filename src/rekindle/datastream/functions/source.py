"""Source functions, whose `run(ctx)` collects records until it returns or `cancel()` is called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any, Self

from rekindle.common.java_names import RefusesJavaNames
from rekindle.common.watermark_strategy import Watermark
from rekindle.datastream.functions.function import Function, RichFunction
from rekindle.datastream.vocabulary import Boundedness
from rekindle.errors import JavaOnlyError


class SourceFunction(RefusesJavaNames, Function):
    """A source with parallelism 1, whose `run` has its own thread. See `ParallelSourceFunction` for more subtasks.

    If `collect` gets each record's offset, the engine keeps the offset of the last record before every checkpoint,
    and the source needs neither a lock nor state of its own (I8).

    >>> class Numbers(SourceFunction):
    ...     running = True
    ...     def run(self, ctx):
    ...         next_number = 0 if ctx.restored_offset is None else ctx.restored_offset + 1
    ...         while self.running and next_number < 10:
    ...             ctx.collect(next_number, offset=next_number)
    ...             next_number += 1
    ...     def cancel(self):
    ...         self.running = False
    >>> Numbers().boundedness().name
    'CONTINUOUS_UNBOUNDED'
    """

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        """Refuse the name of a Java class, which PyFlink's constructor takes."""
        if cls is SourceFunction and arguments and isinstance(arguments[0], str):
            raise JavaOnlyError(f"SourceFunction({arguments[0]!r})", "write the source in Python")
        return super().__new__(cls)

    class SourceContext(ABC):
        """Emits the records of a source function."""

        @abstractmethod
        def collect(self, value: Any, offset: Any = None, split: str | None = None) -> None:
            """Emit a record, with its offset within `split` if the source can be read again from there.

            The call waits while a checkpoint's snapshots are taken, and while the buffer to the task is full.
            """

        @abstractmethod
        def collect_with_timestamp(
            self, value: Any, timestamp: int, offset: Any = None, split: str | None = None
        ) -> None:
            """Emit a record with its event time in milliseconds."""

        @abstractmethod
        def emit_watermark(self, watermark: Watermark | int) -> None:
            """Emit a watermark: no later record has this time or an earlier one."""

        @abstractmethod
        def mark_as_temporarily_idle(self) -> None:
            """Mark the source as idle, so that downstream operators do not wait for its watermark."""

        @abstractmethod
        def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
            """Return the checkpoint lock. While `run` holds it, no snapshot is taken and `collect` does not wait."""

        @property
        @abstractmethod
        def restored_offset(self) -> Any:
            """The restored offset of the last record before the cut (a source of one split). None without a restore."""

        @property
        @abstractmethod
        def restored_offsets(self) -> dict[str, Any]:
            """The restored offsets by split, for all splits of all subtasks. Empty without a restore."""

        @abstractmethod
        def completed_offset(self, checkpoint_id: int) -> Any:
            """Return the offset in checkpoint `checkpoint_id`, for use in `notify_checkpoint_complete`."""

        @abstractmethod
        def close(self) -> None:
            """Stop emitting."""

    @abstractmethod
    def run(self, ctx: SourceFunction.SourceContext) -> None:
        """Collect records. Return when there are no more, or soon after `cancel()`."""

    @abstractmethod
    def cancel(self) -> None:
        """Make `run` return. Called from another thread."""

    def boundedness(self) -> Boundedness:
        """Return whether `run` ends by itself. Override with `Boundedness.BOUNDED` to use the source in BATCH mode."""
        return Boundedness.CONTINUOUS_UNBOUNDED


class ParallelSourceFunction(SourceFunction):
    """A source that runs on every subtask. `runtime_context` in `open` has the subtask's index.

    >>> issubclass(ParallelSourceFunction, SourceFunction)
    True
    """


class RichSourceFunction(SourceFunction, RichFunction):
    """Flink's name for a source function with `open` and `close`. Here every source function has them.

    >>> issubclass(RichSourceFunction, SourceFunction)
    True
    """


class RichParallelSourceFunction(RichSourceFunction, ParallelSourceFunction):
    """Flink's name for a parallel source function with `open` and `close`. Here every source function has them.

    >>> issubclass(RichParallelSourceFunction, ParallelSourceFunction)
    True
    """
