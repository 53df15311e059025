"""The roles that only some operators have, each a small protocol; `Operator` itself has only the common methods.

An operator names its roles as base classes. `OperatorRoles` of `build_chain.py` sorts the operators of a chain by role
once, when the task is built, so that no loop of the task asks for a role again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rekindle.errors import IncompatibleStateError
from rekindle.runtime.operators.output import OperatorFailure

if TYPE_CHECKING:
    from rekindle.checkpoint.committables import StoredCommittable
    from rekindle.runtime.context import OperatorContext
    from rekindle.runtime.snapshot import SnapshotContext


@runtime_checkable
class TwoInputs(Protocol):
    """An operator with a second input."""

    def process_batch2(self, records: list[Any], timestamps: list[int] | None) -> None:
        """Process a batch of the second input."""


@runtime_checkable
class SnapshotParticipant(Protocol):
    """An operator with state of its own, or of its function; it is notified of every checkpoint."""

    def initialize_state(self, restored_id: int | None) -> None:
        """Take over the state, restored or empty; called before `open`."""

    def snapshot_user_state(self, context: SnapshotContext) -> None:
        """Write the function's state into the snapshot."""

    def notify_complete(self, checkpoint_id: int) -> None:
        """Notify the operator that the checkpoint is complete: it is durable."""

    def notify_aborted(self, checkpoint_id: int) -> None:
        """Notify the operator that the checkpoint was aborted, as if it had never been triggered."""


@runtime_checkable
class PreparesSnapshot(Protocol):
    """An operator that must act at the barrier, before its snapshot is taken."""

    def prepare_snapshot(self, checkpoint_id: int) -> None:
        """Bring the state up to date for the snapshot. An error here fails the job, not only the checkpoint."""


@runtime_checkable
class Positioned(Protocol):
    """An operator whose position belongs to the cut."""

    def position(self) -> Any:
        """Return the position at the cut as plain data; None if the snapshot need not hold one."""
        ...

    def seek(self, position: Any) -> None:
        """Continue from a position that `position` returned."""


@runtime_checkable
class Committing(Protocol):
    """A sink that commits after a checkpoint is complete (I18)."""

    def committables(self, checkpoint_id: int) -> Sequence[StoredCommittable]:
        """Return the committables that were handed over and are not committed yet."""
        ...

    def restore_committables(self, stored: list[Iterator[bytes]]) -> None:
        """Take this subtask's share of the restored committables; each can be read once."""

    def settle(self) -> None:
        """Commit the committables that wait for a retry; called after the job's last checkpoint was notified."""

    def has_committed(self, checkpoint_id: int) -> bool:
        """Whether no committable of this checkpoint or an earlier one waits for a retry."""


@runtime_checkable
class Cancellable(Protocol):
    """An operator that may block: a cancellation must end its waiting."""

    def cancel(self) -> None:
        """Stop waiting; called from another thread."""


@runtime_checkable
class Timed(Protocol):
    """An operator that has work at a wall-clock time, even if no input comes (I4)."""

    def next_due_ms(self) -> int | None:
        """Return the wall-clock time at which the operator needs an epoch; None if it needs none."""
        ...

    def on_processing_time(self, now_ms: int) -> None:
        """Do the work that is due by now; called inside an epoch."""


@runtime_checkable
class EpochListener(Protocol):
    """An operator that emits at the end of an epoch."""

    def end_of_epoch(self) -> None:
        """Emit the rest of the epoch: its input is processed, its output is not sent yet."""


def refuse_committables(context: OperatorContext, stored: Sequence[Iterator[bytes]]) -> None:
    """Refuse committables for an operator that commits nothing: a restore must not lose them unasked."""
    if stored and not context.settings.allow_non_restored_state:
        raise OperatorFailure(context.node.name) from IncompatibleStateError(
            f"The checkpoint holds {len(stored)} committables for {context.task_name}, which commits nothing "
            "in this program: give the sink its committer back, or allow that the committables are dropped "
            "(allow_non_restored_state)."
        )
