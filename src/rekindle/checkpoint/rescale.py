"""Compute each subtask's share of a checkpoint, at the same or another parallelism. Pure.

Keyed state is shared by key group, operator state by the distribution of each list. The splits of a source with readers
are pooled and dealt out again. A source function, and a source with a `split_owner`, assign their splits themselves, so
each of their subtasks sees all of them (I8).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from rekindle.checkpoint.manifest import (
    Blob,
    KeyedPart,
    Manifest,
    OperatorState,
    PartKind,
    SubtaskState,
)
from rekindle.checkpoint.parts import by_key_group
from rekindle.checkpoint.redistribute import split_share, whole_share
from rekindle.errors import CorruptCheckpointError, IncompatibleStateError
from rekindle.graph.nodes import JobPlan, OperatorKind
from rekindle.key_groups import key_group_range


@dataclass(frozen=True)
class OperatorTarget:
    """An operator of the program that restores a checkpoint."""

    uid: str
    name: str
    parallelism: int
    max_parallelism: int
    layout: str = ""
    #: Whether every subtask sees the splits of all subtasks: the source assigns them itself (I8).
    sees_all_splits: bool = False
    #: The operators each of whose subtasks sends to some subtasks only (`forward`, `rescale()`, inside a chain).
    senders_to_some: tuple[str, ...] = ()


class SubtaskShare(msgspec.Struct, frozen=True):
    """A new subtask's share of an operator's state: references only, small enough to send.

    `read_state.read_subtask` reads the bytes.
    """

    uid: str
    subtask: int
    parallelism: int
    #: Whether the parallelism differs from the checkpoint's: then lists hold the state of all old subtasks, in order.
    rescaled: bool
    #: Whether its subtasks get other records than before, because of this or of another operator's parallelism: then
    #: `task` and `in_flight` are those of all old subtasks, as a subtask's watermark says nothing of its new records.
    regrouped: bool = False
    finished: bool = False
    #: The operators whose subtasks get other records than before: their channels begin anew.
    regrouped_senders: list[str] = []
    #: Whether some old subtask had state of any kind.
    has_state: bool = True
    keyed: list[KeyedPart] = []
    timers: list[KeyedPart] = []
    raw_keyed: list[KeyedPart] = []
    #: The state of this subtask alone, or of all old ones in order, with None for a subtask without any.
    operator_state: list[Blob | None] = []
    raw_operator: list[Blob] = []
    source: list[Blob] = []
    #: All old subtasks' state of a source whose subtasks see all splits; `source` then is this subtask's own, if any.
    all_sources: list[Blob] = []
    task: list[Blob] = []
    committables: list[Blob] = []
    #: Chunks in flight to this subtask alone, or to all old ones.
    in_flight: list[Blob] = []
    #: Sizes of the files of this state, if the subtask's next checkpoint may refer to them.
    file_bytes: dict[str, int] = {}


def assign(
    manifest: Manifest, targets: Iterable[OperatorTarget], *, allow_non_restored_state: bool = False
) -> Mapping[str, list[SubtaskShare]]:
    """Operator uid -> share of each of its subtasks; operators without state in the checkpoint are left out.

    IncompatibleStateError names an operator whose state does not fit, or one that the program does not have.
    """
    by_uid = {target.uid: target for target in targets}
    gone = [state for state in manifest.operators if state.uid not in by_uid and any(map(_has_state, state.subtasks))]
    if gone and not allow_non_restored_state:
        raise IncompatibleStateError(_gone_sentence(manifest, gone))
    regrouped = regrouped_operators(manifest, by_uid)
    return {
        state.uid: assign_operator(state, by_uid[state.uid], regrouped)
        for state in manifest.operators
        if state.uid in by_uid
    }


def regrouped_operators(manifest: Manifest, targets: Mapping[str, OperatorTarget]) -> frozenset[str]:
    """The uids of operators whose subtasks get other records than before.

    Their own parallelism has changed, or that of an operator before them, over edges that join some subtasks only.
    """
    saved = {state.uid: state.parallelism for state in manifest.operators}
    found = {uid for uid, target in targets.items() if saved.get(uid, target.parallelism) != target.parallelism}
    while more := {
        uid for uid, target in targets.items() if uid not in found and not found.isdisjoint(target.senders_to_some)
    }:
        found |= more
    return frozenset(found)


def assign_operator(
    state: OperatorState, target: OperatorTarget, regrouped_uids: frozenset[str] = frozenset()
) -> list[SubtaskShare]:
    """The share of each new subtask of one operator."""
    _check_layout(state, target)
    _check_fits(state, target)
    old = sorted(state.subtasks, key=lambda subtask: subtask.subtask)
    if [subtask.subtask for subtask in old] != list(range(state.parallelism)):
        raise CorruptCheckpointError(f"The checkpoint lacks subtasks of operator '{state.name}'.")
    rescaled = state.parallelism != target.parallelism
    regrouped = rescaled or target.uid in regrouped_uids
    union = any(subtask.union for subtask in old)
    keyed = _by_owner(state, target, [part for s in old for part in s.keyed])
    timers = _by_owner(state, target, [part for s in old for part in s.timers])
    raw_keyed = _by_owner(state, target, [part for s in old for part in s.raw_keyed])
    return [
        SubtaskShare(
            uid=target.uid,
            subtask=subtask,
            parallelism=target.parallelism,
            rescaled=rescaled,
            regrouped=regrouped,
            regrouped_senders=sorted(regrouped_uids),
            finished=all(s.finished for s in old) if regrouped else old[subtask].finished,
            has_state=any(map(_has_state, old)),
            keyed=keyed[subtask],
            timers=timers[subtask],
            raw_keyed=raw_keyed[subtask],
            operator_state=_operator_blobs(old if rescaled or union else [old[subtask]]),
            raw_operator=split_share([s.raw_operator for s in old], target.parallelism, subtask),
            source=_sources([] if rescaled and target.sees_all_splits else old if rescaled else [old[subtask]]),
            all_sources=_sources(old if target.sees_all_splits else []),
            task=[s.task for s in (old if regrouped else [old[subtask]]) if s.task is not None],
            committables=whole_share([s.committables for s in old], target.parallelism, subtask),
            in_flight=[s.in_flight for s in (old if regrouped else [old[subtask]]) if s.in_flight is not None],
            file_bytes={} if rescaled else old[subtask].file_bytes,
        )
        for subtask in range(target.parallelism)
    ]


def stored_max_parallelism(manifest: Manifest) -> dict[str, int]:
    """Operator uid -> number of key groups in the checkpoint: the maximum parallelism if the program sets none.

    Operators without keyed state are left out: they may have any.
    """
    return {state.uid: state.max_parallelism for state in manifest.operators if _has_key_groups(state)}


# -- key groups --------------------------------------------------------------------------------------------------------


def _has_key_groups(state: OperatorState) -> bool:
    return any(subtask.keyed or subtask.timers or subtask.raw_keyed for subtask in state.subtasks)


def _check_fits(state: OperatorState, target: OperatorTarget) -> None:
    if not _has_key_groups(state):
        return
    if target.parallelism > state.max_parallelism:
        raise IncompatibleStateError(
            f"Operator '{target.name}' cannot run with parallelism {target.parallelism}: its state has "
            f"{state.max_parallelism} key groups, so at most {state.max_parallelism} subtasks can share it."
        )
    if target.max_parallelism != state.max_parallelism:
        raise IncompatibleStateError(
            f"Operator '{target.name}' has maximum parallelism {target.max_parallelism}, but its state was saved with "
            f"{state.max_parallelism}: call set_max_parallelism({state.max_parallelism}) to restore it."
        )


def _check_layout(state: OperatorState, target: OperatorTarget) -> None:
    if state.layout == target.layout or not any(map(_has_own_state, state.subtasks)):
        return
    saved, wanted = (layout or "what a user's function keeps" for layout in (state.layout, target.layout))
    raise IncompatibleStateError(
        f"Operator '{target.name}' cannot take its state: it was saved as {saved}, but the program has {wanted} under "
        "the same uid. Give the new operator another uid() and allow that the old state is dropped with "
        "execution.state-recovery.ignore-unclaimed-state, or go on with the program that saved it."
    )


def _by_owner(state: OperatorState, target: OperatorTarget, parts: Sequence[KeyedPart]) -> list[list[KeyedPart]]:
    """The parts of each new subtask, by key group, the full part first."""
    groups = by_key_group(parts)
    for group, own in groups.items():
        full_first = [part.kind is PartKind.FULL for part in own] == [True] + [False] * (len(own) - 1)
        if not full_first or not 0 <= group < state.max_parallelism or len({part.order for part in own}) < len(own):
            raise CorruptCheckpointError(f"The parts of key group {group} of operator '{state.name}' do not fit.")
    if not groups:
        return [[] for _ in range(target.parallelism)]
    ranges = [key_group_range(state.max_parallelism, target.parallelism, i) for i in range(target.parallelism)]
    return [[part for group in own for part in groups.get(group, ())] for own in ranges]


# -- lists -------------------------------------------------------------------------------------------------------------


def _operator_blobs(old: Sequence[SubtaskState]) -> list[Blob | None]:
    blobs = [subtask.operator_state for subtask in old]
    return blobs if any(blob is not None for blob in blobs) else []


def _sources(old: Sequence[SubtaskState]) -> list[Blob]:
    return [subtask.source for subtask in old if subtask.source is not None]


# -- state without an operator in the program --------------------------------------------------------------------------


def _has_state(subtask: SubtaskState) -> bool:
    """Whether dropping the subtask's state loses anything; its task's watermarks alone do not count."""
    return any(
        (
            subtask.keyed,
            subtask.timers,
            subtask.raw_keyed,
            subtask.operator_state is not None,
            subtask.raw_operator,
            subtask.source is not None,
            subtask.committables,
            subtask.in_flight is not None,
        )
    )


def _has_own_state(subtask: SubtaskState) -> bool:
    """Whether there is state whose layout matters."""
    return bool(subtask.keyed or subtask.timers or subtask.raw_keyed or subtask.operator_state is not None)


def _gone_sentence(manifest: Manifest, gone: Sequence[OperatorState]) -> str:
    names = ", ".join(f"'{state.name}' (uid {state.uid})" for state in gone)
    what = "operator" if len(gone) == 1 else "operators"
    return (
        f"The {manifest.kind} {manifest.checkpoint_id} has state of the {what} {names}, which the program has no more: "
        "give the operators their uid() back, or allow that this state is dropped with "
        "execution.state-recovery.ignore-unclaimed-state."
    )


def refuse_rescaled_frames(plan: JobPlan, manifest: Manifest) -> None:
    """Raise if the parallelism has changed: the ends of partitions are saved per channel, which change with it."""
    saved = {operator.uid: operator.parallelism for operator in manifest.operators}
    for node in plan.nodes:
        old = saved.get(node.uid, node.parallelism)
        if node.kind is not OperatorKind.SOURCE_DATAFRAME and old != node.parallelism:
            raise IncompatibleStateError(
                f"A job with a DataFrame source can only be restored with the parallelism it was saved with: set "
                f"that of '{node.name}' to {old}."
            )
