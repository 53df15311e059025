"""Sources written as a function that runs: `run(ctx)` collects records until it returns or `cancel()` is called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

from rekindle.common.watermark_strategy import Watermark
from rekindle.datastream.functions.function import Function, RichFunction
from rekindle.datastream.vocabulary import Boundedness


class SourceFunction(Function):
    """A source with parallelism 1. `run` has a thread of its own; see `ParallelSourceFunction` for more than one.

    Give each record's offset along with it and the engine keeps the offset of the last record before every
    checkpoint: no lock, no state of your own (I8).

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

    class SourceContext(ABC):
        """Through which a source function emits."""

        @abstractmethod
        def collect(self, value: Any, offset: Any = None, split: str | None = None) -> None:
            """Emit a record, with its offset within `split` if it can be read again from there.

            Waits while a checkpoint's snapshots are taken, and while the job is behind.
            """

        @abstractmethod
        def collect_with_timestamp(
            self, value: Any, timestamp: int, offset: Any = None, split: str | None = None
        ) -> None:
            """Emit a record with its event time in milliseconds."""

        @abstractmethod
        def emit_watermark(self, watermark: Watermark | int) -> None:
            """Promise that no record at or before this time follows."""

        @abstractmethod
        def mark_as_temporarily_idle(self) -> None:
            """Say that no record comes for a while, so that nobody waits for this source's watermark."""

        @abstractmethod
        def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
            """While it is held (`with ctx.get_checkpoint_lock():`) no checkpoint cuts, and `collect` does not wait."""

        @property
        @abstractmethod
        def restored_offset(self) -> Any:
            """After a restore, the offset of the last record before the cut (a source of one split); else None."""

        @property
        @abstractmethod
        def restored_offsets(self) -> dict[str, Any]:
            """After a restore, that offset by split, over all splits of all subtasks; else empty."""

        @abstractmethod
        def completed_offset(self, checkpoint_id: int) -> Any:
            """The offset that checkpoint `checkpoint_id` holds, for use in `notify_checkpoint_complete`."""

        @abstractmethod
        def close(self) -> None:
            """Emit nothing more."""

    @abstractmethod
    def run(self, ctx: SourceFunction.SourceContext) -> None:
        """Collect records; return when there are no more, or soon after `cancel()`."""

    @abstractmethod
    def cancel(self) -> None:
        """Make `run` return. Called from another thread."""

    def boundedness(self) -> Boundedness:
        """Whether `run` ends by itself. Override with `Boundedness.BOUNDED` to use the source in BATCH mode."""
        return Boundedness.CONTINUOUS_UNBOUNDED


class ParallelSourceFunction(SourceFunction):
    """A source that runs once per subtask; `runtime_context` in `open` says which one it is.

    >>> issubclass(ParallelSourceFunction, SourceFunction)
    True
    """


class RichSourceFunction(SourceFunction, RichFunction):
    """Flink's name for a source function with `open` and `close`, which all have here.

    >>> issubclass(RichSourceFunction, SourceFunction)
    True
    """


class RichParallelSourceFunction(RichSourceFunction, ParallelSourceFunction):
    """Flink's name for a parallel source function with `open` and `close`, which all have here.

    >>> issubclass(RichParallelSourceFunction, ParallelSourceFunction)
    True
    """
