"""From what the subtasks said to the manifest of a checkpoint; the positions of DataFrame sources too. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from rekindle.checkpoint.manifest import FileRef, Manifest, ManifestKind, OperatorState, SubtaskState
from rekindle.checkpoint.ownership import Claim
from rekindle.checkpoint.paths import StateFileName
from rekindle.checkpoint.rescale import SourceState, SplitState
from rekindle.checkpoint.subtask import on_top_of
from rekindle.coordinator.checkpoint_types import PendingCheckpoint
from rekindle.errors import IncompatibleStateError
from rekindle.graph.nodes import JobPlan, OperatorKind
from rekindle.graph.state_layout import state_layout
from rekindle.protocol import SnapshotTaken
from rekindle.serde import tagged_dumps

_decode_state = msgspec.msgpack.Decoder(SubtaskState).decode


@dataclass(frozen=True)
class SubtaskWord:
    """What a subtask said about a checkpoint; `states`: by operator uid, whole, with what the deltas stand on."""

    word: SnapshotTaken
    states: Sequence[tuple[str, SubtaskState]]

    @classmethod
    def on_top(cls, base: Manifest | None, word: SnapshotTaken) -> SubtaskWord:
        """A word whose deltas stand on a completed checkpoint, or on nothing (I12)."""
        states = []
        for operator in word.operators:
            state = _decode_state(operator.state)
            states.append((operator.uid, on_top_of(_base_of(base, operator.uid, state.subtask), state)))
        return cls(word, states)

    def files_of(self, checkpoint_id: int) -> set[str]:
        """The state files that the subtask wrote for this checkpoint, as references."""
        references = {blob.path for _, state in self.states for blob in state.blobs() if isinstance(blob, FileRef)}
        names = {each: StateFileName.parse(each) for each in references}
        return {each for each, name in names.items() if name is not None and name.checkpoint_id == checkpoint_id}


@dataclass(frozen=True)
class Acknowledged:
    """Everything that every subtask said about a checkpoint."""

    words: Sequence[SubtaskWord]
    #: The partitions left of each DataFrame source (I10).
    unread: Mapping[int, Sequence[int]]

    def manifest(self, plan: JobPlan, claim: Claim, checkpoint: PendingCheckpoint, duration_ms: int) -> Manifest:
        """The checkpoint as it will be published."""
        states: dict[str, list[SubtaskState]] = {}
        for word in self.words:
            for uid, state in word.states:
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
                    node.uid, node.name, node.parallelism, node.max_parallelism, states[node.uid], state_layout(node)
                )
                for node in plan.nodes
                if node.uid in states
            ]
            + _frames(plan, self.unread),
        )


def refuse_rescaled_frames(plan: JobPlan, manifest: Manifest) -> None:
    """Which partitions have ended is known per channel, and channels do not survive a change of parallelism."""
    saved = {operator.uid: operator.parallelism for operator in manifest.operators}
    for node in plan.nodes:
        old = saved.get(node.uid, node.parallelism)
        if node.kind is not OperatorKind.SOURCE_DATAFRAME and old != node.parallelism:
            raise IncompatibleStateError(
                f"A job with a DataFrame source can only be restored with the parallelism it was saved with: set "
                f"that of '{node.name}' to {old}."
            )


def _frames(plan: JobPlan, unread: Mapping[int, Sequence[int]]) -> list[OperatorState]:
    """The positions of DataFrame sources, which the driver reads itself."""
    return [
        OperatorState(
            plan.nodes[node].uid,
            plan.nodes[node].name,
            1,
            plan.nodes[node].max_parallelism,
            [SubtaskState(0, finished=not partitions, source=_partitions_left(partitions))],
        )
        for node, partitions in unread.items()
    ]


def _partitions_left(partitions: Sequence[int]) -> bytes:
    return SourceState([SplitState(tagged_dumps(str(each)), tagged_dumps(each)) for each in partitions]).encode()


def _base_of(base: Manifest | None, uid: str, subtask: int) -> SubtaskState | None:
    if base is None:
        return None
    operator = next((each for each in base.operators if each.uid == uid), None)
    return next((each for each in operator.subtasks if each.subtask == subtask), None) if operator else None
