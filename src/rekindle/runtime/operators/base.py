"""What every operator is: batches in, batches out, watermarks in between.

Operators of a chain call each other directly. A batch is a list of records and a list of timestamps of the same length
(None when no record has one). User code's errors leave as `OperatorFailure` with the record they were about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rekindle.common.watermark_strategy import MAX_WATERMARK, MIN_WATERMARK
from rekindle.errors import IncompatibleStateError
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.isolation import isolator, mixed_isolator
from rekindle.runtime.operators.output import Collector, Emit, OperatorFailure, Output

if TYPE_CHECKING:
    from rekindle.checkpoint.committables import StoredCommittable
    from rekindle.checkpoint.part_formats import SourceState
    from rekindle.runtime.context import OperatorContext
    from rekindle.runtime.snapshot import SnapshotContext


class Operator:
    """Base of all operators; also a `Consumer`, so that chained operators need nothing between them."""

    #: Whether the operator takes a second input.
    two_inputs = False
    #: Records that ended here; sinks count them.
    records_sunk = 0
    #: Whether the function may yield `(tag, value)` for a side output.
    yields_tagged = True
    #: Whether the end of the input has come in and has not gone out yet: until then the task has not ended.
    end_held = False

    def __init__(self, node: OperatorNode, context: OperatorContext) -> None:
        self.node = node
        self.name = node.name
        self.context = context
        isolate = isolator(node.output_type, context.settings.object_reuse)
        sides = {tag: isolator(side, context.settings.object_reuse) for tag, side in node.side_output_types.items()}
        #: How what user code emits is protected from what it does afterwards; None: it needs no protection.
        self.isolate = mixed_isolator(isolate, sides)
        self.output = Output(isolate, sides)
        self.collector = Collector(self.output, self.isolate, self.yields_tagged)
        self.current_watermark = MIN_WATERMARK

    # -- life ---------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Before the first record, on the task's thread."""

    def finish(self) -> None:
        """After the last record and the last watermark."""

    def close(self) -> None:
        """At the end, also after a failure."""

    def release_end(self) -> None:
        """Nothing comes after this epoch: wait here for what holds the end back."""

    def cancel(self) -> None:
        """Wait for nothing any more; called from another thread."""

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def initialize_state(self, restored_id: int | None) -> None:
        """Before `open`: the state is there, restored or empty."""

    def snapshot_user_state(self, context: SnapshotContext) -> None:
        """The user's part of a snapshot."""

    def source_state(self) -> SourceState | None:
        """Where a source goes on after a restore."""
        return None

    def restore_source(self, state: SourceState, finished: bool) -> None:
        """Go on from there."""

    def position(self) -> Any:
        """What else belongs to the cut, as plain data; None if nothing does."""
        return None

    def seek(self, position: Any) -> None:
        """Take back what `position` gave."""

    def restore_watermark(self, watermark: int) -> None:
        """What was late before the restore stays late (I6)."""
        self.current_watermark = watermark

    def prepare_snapshot(self, checkpoint_id: int) -> None:
        """Before the snapshot: what fails here fails the job, not only the checkpoint."""

    def committables(self, checkpoint_id: int) -> Sequence[StoredCommittable]:
        """What a sink has handed over and not committed yet (I18)."""
        return ()

    def restore_committables(self, stored: list[Iterator[bytes]]) -> None:
        """This subtask's share of them, each to be read once; nothing that a checkpoint covers is lost unasked."""
        if stored and not self.context.settings.allow_non_restored_state:
            raise OperatorFailure(self.name) from IncompatibleStateError(
                f"The checkpoint holds {len(stored)} committables for {self.context.task_name}, which commits nothing "
                "in this program: give it its committer back, or allow that they are dropped "
                "(allow_non_restored_state)."
            )

    def restore_ended(self) -> None:
        """The input had ended before the checkpoint that is restored (I9)."""

    def settle(self) -> None:
        """After the notification of the job's last checkpoint: commit what wants to be tried again."""

    def notify_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable."""
        if self.context.keyed is not None:
            self.context.keyed.snapshot_completed(checkpoint_id)
        if self.context.timers is not None:
            self.context.timers.snapshot_completed(checkpoint_id)

    def notify_aborted(self, checkpoint_id: int) -> None:
        """As if it had never been triggered."""
        if self.context.keyed is not None:
            self.context.keyed.snapshot_aborted(checkpoint_id)
        if self.context.timers is not None:
            self.context.timers.snapshot_aborted(checkpoint_id)

    # -- data ---------------------------------------------------------------------------------------------------------

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        """Take a batch of the (first) input."""
        raise AssertionError(f"{type(self).__name__} has no input")

    def process_batch2(self, records: list[Any], timestamps: list[int] | None) -> None:
        """Take a batch of the second input."""
        raise AssertionError(f"{type(self).__name__} has no second input")

    def process_watermark(self, watermark: int) -> None:
        """Event time has advanced to `watermark` on all inputs."""
        self.current_watermark = watermark
        self.output.emit_watermark(watermark)

    def ends_batch(self, watermark: int) -> bool:
        """Whether BATCH mode's one watermark has come: all timers are due, of both clocks, and none can be set."""
        return self.context.batch and watermark == MAX_WATERMARK

    def process_idle(self) -> None:
        """All inputs are idle."""
        self.output.emit_idle()

    def end_of_epoch(self) -> None:
        """The epoch's input is processed, its output is not sent yet."""

    # -- time that passes by itself (I4) ------------------------------------------------------------------------------

    def next_due_ms(self) -> int | None:
        """Wall-clock time at which the operator wants an epoch although no input came."""
        return None

    def on_processing_time(self, now_ms: int) -> None:
        """Do what is due by now; called inside an epoch."""

    # -- as a consumer of the operator before it ----------------------------------------------------------------------

    @property
    def emit(self) -> Emit:
        """How the operator before this one in the chain hands over a batch."""
        return self.process_batch

    def emit_watermark(self, watermark: int) -> None:
        """A chained watermark."""
        self.process_watermark(watermark)

    def emit_idle(self) -> None:
        """Chained idleness."""
        self.process_idle()

    def emit_end(self) -> None:
        """The chained end of input: finish, then tell what follows."""
        self.finish()
        self.output.emit_end()
