"""`Operator`, the base of all operators: its life, its input, its output, and the end of its input.

Operators of a chain call each other directly. A batch is a list of records and a list of timestamps of the same length
(None when no record has one). An error of user code leaves as an `OperatorFailure` with the record that caused it.
Abilities that only some operators have are protocols of `roles.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rekindle.common.watermark_strategy import MIN_WATERMARK
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.copy_on_emit import isolator, mixed_isolator
from rekindle.runtime.operators.output import Collector, Emit, Output

if TYPE_CHECKING:
    from rekindle.runtime.context import OperatorContext


class Operator:
    """Base of all operators; also a `Consumer`, so that an operator calls the next one of its chain directly."""

    #: The number of records that ended in this operator; sinks count them.
    records_sunk = 0
    #: Whether the function may yield `(tag, value)` for a side output.
    yields_tagged = True
    #: Whether the operator has received the end of the input and not passed it on: until then the task has not ended.
    end_held = False

    def __init__(self, node: OperatorNode, context: OperatorContext) -> None:
        self.node = node
        self.name = node.name
        self.context = context
        reuse, wrap = context.settings.object_reuse, context.settings.wrap_numbers
        isolate = isolator(node.output_type, reuse, wrap)
        sides = {tag: isolator(side, reuse, wrap) for tag, side in node.side_output_types.items()}
        #: Copies an emitted record, so that user code cannot change it afterwards; None: no copy is needed.
        self.isolate = mixed_isolator(isolate, sides)
        self.output = Output(isolate, sides)
        self.collector = Collector(self.output, self.isolate, self.yields_tagged)
        self.current_watermark = MIN_WATERMARK

    # -- life ---------------------------------------------------------------------------------------------------------

    def restore_watermark(self, watermark: int) -> None:
        """Restore the watermark, so that records which were late before the restore stay late (I6)."""
        self.current_watermark = watermark

    def open(self) -> None:
        """Open the operator before the first record, on the task's thread."""

    def close(self) -> None:
        """Close the operator; called also after a failure."""

    # -- input --------------------------------------------------------------------------------------------------------

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        """Process a batch of the (first) input."""
        raise AssertionError(f"{type(self).__name__} has no input")

    def process_watermark(self, watermark: int) -> None:
        """Process a watermark: event time has advanced to it on all inputs."""
        self.current_watermark = watermark
        self.output.emit_watermark(watermark)

    def process_idle(self) -> None:
        """Process idleness: all inputs are idle."""
        self.output.emit_idle()

    # -- end of input -------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Finish after the last record and the last watermark."""

    def release_end(self) -> None:
        """Wait for whatever holds the end of the input back: no epoch follows this one."""

    def restore_ended(self) -> None:
        """Restore an operator whose input had ended before the checkpoint (I9)."""

    # -- as a consumer of the operator before it ----------------------------------------------------------------------

    @property
    def emit(self) -> Emit:
        """The function to which the operator before this one in the chain hands a batch."""
        return self.process_batch

    def emit_watermark(self, watermark: int) -> None:
        """Receive a watermark from the operator before."""
        self.process_watermark(watermark)

    def emit_idle(self) -> None:
        """Receive idleness from the operator before."""
        self.process_idle()

    def emit_end(self) -> None:
        """Receive the end of the input: finish, then pass the end on."""
        self.finish()
        self.output.emit_end()
