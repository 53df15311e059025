"""A checkpoint under way: the acknowledgements of its subtasks, the base of its deltas, and a savepoint's place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from rekindle.checkpoint.load_checkpoint import LoadedCheckpoint
from rekindle.checkpoint.manifest import FileRef, Manifest, ManifestKind, OperatorState, SubtaskState
from rekindle.checkpoint.ownership import Claim
from rekindle.checkpoint.part_formats import SourceState, SplitState
from rekindle.checkpoint.parts import on_top_of
from rekindle.checkpoint.paths import StateFileName, new_savepoint_folder, url_of
from rekindle.checkpoint.statefile import read_blob
from rekindle.checkpoint.store.open_store import check_usable
from rekindle.checkpoint.store.options import open_configured
from rekindle.checkpoint.store.port import Store
from rekindle.coordinator.checkpoints.types import PendingCheckpoint, Subtask
from rekindle.errors import CheckpointError
from rekindle.graph.nodes import JobPlan
from rekindle.protocol import CheckpointAcknowledged
from rekindle.serde import tagged_dumps, tagged_loads

_decode_state = msgspec.msgpack.Decoder(SubtaskState).decode


@dataclass
class SavepointPlace:
    """The store and folder of a savepoint that is being written."""

    store: Store
    folder: str
    #: Whether the note of a stop names it: `latest` may have found it.
    noted: bool = False

    @property
    def url(self) -> str:
        """The URL from which users restore it."""
        return url_of(self.store, self.folder)


def new_savepoint_place(job_id: str, directory: str | None, options: Mapping[str, Mapping[str, str]]) -> SavepointPlace:
    """A new folder for a savepoint below a directory. Raises CheckpointError if it cannot be written."""
    if not directory:
        raise CheckpointError(
            "There is no directory for the savepoint: name one, or set execution.checkpointing.savepoint-dir."
        )
    store = open_configured(directory, options)
    check_usable(store)
    return SavepointPlace(store, new_savepoint_folder(job_id))


@dataclass(frozen=True)
class AcknowledgedSubtask:
    """A subtask's acknowledgement and its whole state by operator uid: deltas together with their base."""

    message: CheckpointAcknowledged
    states: Sequence[tuple[str, SubtaskState]]

    @classmethod
    def based_on(cls, base: Manifest | None, message: CheckpointAcknowledged) -> AcknowledgedSubtask:
        """Complete an acknowledgement whose deltas are based on a completed checkpoint, or on none (I12)."""
        states = []
        for operator in message.operators:
            state = _decode_state(operator.state)
            states.append((operator.uid, on_top_of(_base_of(base, operator.uid, state.subtask), state)))
        return cls(message, states)

    def files_of(self, checkpoint_id: int) -> set[str]:
        """The state files that the subtask wrote for this checkpoint, as references."""
        references = {blob.path for _, state in self.states for blob in state.blobs() if isinstance(blob, FileRef)}
        names = {each: StateFileName.parse(each) for each in references}
        return {each for each, name in names.items() if name is not None and name.checkpoint_id == checkpoint_id}


def _base_of(base: Manifest | None, uid: str, subtask: int) -> SubtaskState | None:
    if base is None:
        return None
    operator = next((each for each in base.operators if each.uid == uid), None)
    return next((each for each in operator.subtasks if each.subtask == subtask), None) if operator else None


@dataclass
class CheckpointUnderWay:
    """A checkpoint from its trigger to its publication. Of an aborted savepoint the place is kept until its attempt has
    ended: slots may write there until then.
    """

    #: The completed checkpoint that its deltas are based on (I12).
    base_id: int | None = None
    #: Where it is written, if it is a savepoint.
    savepoint: SavepointPlace | None = None
    acknowledged: dict[Subtask, AcknowledgedSubtask] = field(default_factory=dict)
    #: The partitions left of each DataFrame source (I10); from its cut on.
    unread: Mapping[int, Sequence[int]] = field(default_factory=dict)

    def files(self, checkpoint_id: int) -> set[str]:
        """The files that its subtasks wrote, as far as they have acknowledged."""
        return {path for each in self.acknowledged.values() for path in each.files_of(checkpoint_id)}

    def manifest(self, plan: JobPlan, claim: Claim, checkpoint: PendingCheckpoint, duration_ms: int) -> Manifest:
        """The checkpoint as it will be published."""
        states: dict[str, list[SubtaskState]] = {}
        for subtask in self.acknowledged.values():
            for uid, state in subtask.states:
                states.setdefault(uid, []).append(state)
        return Manifest(
            kind=ManifestKind.SAVEPOINT if checkpoint.kind.is_savepoint else ManifestKind.CHECKPOINT,
            checkpoint_id=checkpoint.id,
            job_id=claim.job_id,
            job_name=plan.job_name,
            timeline=claim.timeline,
            attempt=claim.attempt,
            timestamp_ms=checkpoint.timestamp_ms,
            duration_ms=duration_ms,
            operators=[
                OperatorState(
                    node.uid,
                    node.name,
                    node.parallelism,
                    node.max_parallelism,
                    states[node.uid],
                    node.details.state_layout(),
                )
                for node in plan.nodes
                if node.uid in states
            ]
            + _dataframe_positions(plan, self.unread),
            claimed_ms=claim.claimed_ms,
        )


def _dataframe_positions(plan: JobPlan, unread: Mapping[int, Sequence[int]]) -> list[OperatorState]:
    """The positions of DataFrame sources, which the driver reads itself."""
    return [
        OperatorState(
            plan.nodes[node].uid,
            plan.nodes[node].name,
            1,
            plan.nodes[node].max_parallelism,
            [SubtaskState(0, finished=not partitions, source=_encode_partitions(partitions))],
        )
        for node, partitions in unread.items()
    ]


def _encode_partitions(partitions: Sequence[int]) -> bytes:
    return SourceState([SplitState(tagged_dumps(str(each)), tagged_dumps(each)) for each in partitions]).encode()


def partitions_left(restored: LoadedCheckpoint, uid: str) -> list[int] | None:
    """The unread partitions of a DataFrame source in a checkpoint; None: the checkpoint does not contain the source."""
    for operator in restored.manifest.operators:
        blob = operator.subtasks[0].source
        if operator.uid == uid and blob is not None:
            splits = SourceState.decode(read_blob(restored.store, restored.root, blob)).splits
            return [int(tagged_loads(split.position)) for split in splits]
    return None
