"""Compute each subtask's share of a checkpoint, at the same or another parallelism. Pure.

Keyed state is shared by key group, operator state by the distribution of each list. The splits of a source with readers
are pooled and dealt out again. A source function, and a source with a `split_owner`, assign their splits themselves, so
each of their subtasks sees all of them (I8).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from rekindle.checkpoint.manifest import (
    BY_KEY_GROUP,
    LISTS,
    SINGLE,
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
    #: Whether the parallelism differs from the checkpoint's.
    rescaled: bool
    #: The parts that this subtask alone is restored from: those of its key groups, and its share of the lists.
    own: SubtaskState
    #: The single blobs of the old subtasks, in order: of this subtask's own one, and of the others if they are shared.
    old: list[SubtaskState] = []
    #: Whether its subtasks get other records than before, because of this or of another operator's parallelism: then
    #: `task` and `in_flight` of all old subtasks count, as a subtask's watermark says nothing of its new records.
    regrouped: bool = False
    #: The operators whose subtasks get other records than before: their channels begin anew.
    regrouped_senders: list[str] = []
    #: Whether some old subtask had state of any kind.
    has_state: bool = True
    #: Whether every subtask sees the splits of all old ones.
    sees_all_splits: bool = False

    def saved(self, name: str, *, of_all: bool) -> list[Blob]:
        """The single blobs of this name that are there: of all old subtasks, or of this one alone."""
        states = [state for state in self.old if of_all or (state.subtask == self.subtask and not self.rescaled)]
        return [blob for state in states if (blob := getattr(state, name)) is not None]

    @property
    def has_source(self) -> bool:
        """Whether there are splits of a source."""
        return any(state.source is not None for state in self.old)


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
    all_of = {
        "operator_state": rescaled or any(subtask.union for subtask in old),
        "source": rescaled or target.sees_all_splits,
        "task": regrouped,
        "in_flight": regrouped,
    }
    by_group: dict[str, Any] = {name: _by_owner(state, target, name) for name in BY_KEY_GROUP}
    return [
        SubtaskShare(
            uid=target.uid,
            subtask=subtask,
            parallelism=target.parallelism,
            rescaled=rescaled,
            own=SubtaskState(
                subtask,
                finished=all(s.finished for s in old) if regrouped else old[subtask].finished,
                **{name: parts[subtask] for name, parts in by_group.items()},
                union=any(s.union for s in old),
                raw_operator=split_share([s.raw_operator for s in old], target.parallelism, subtask),
                committables=whole_share([s.committables for s in old], target.parallelism, subtask),
                file_bytes={} if rescaled else old[subtask].file_bytes,
            ),
            old=_singles(old, all_of, own=None if rescaled else subtask),
            regrouped=regrouped,
            regrouped_senders=sorted(regrouped_uids),
            has_state=any(map(_has_state, old)),
            sees_all_splits=target.sees_all_splits,
        )
        for subtask in range(target.parallelism)
    ]


def _singles(old: Iterable[SubtaskState], all_of: Mapping[str, bool], own: int | None) -> list[SubtaskState]:
    """The single blobs that a new subtask is restored from: those of its own old one, and those that all get."""
    kept = [
        SubtaskState(
            each.subtask, **{name: getattr(each, name) for name in SINGLE if each.subtask == own or all_of[name]}
        )
        for each in old
    ]
    return kept if all_of["operator_state"] else [each for each in kept if each.holds(*SINGLE)]


def stored_max_parallelism(manifest: Manifest) -> dict[str, int]:
    """Operator uid -> number of key groups in the checkpoint: the maximum parallelism if the program sets none.

    Operators without keyed state are left out: they may have any.
    """
    return {state.uid: state.max_parallelism for state in manifest.operators if _has_key_groups(state)}


# -- key groups --------------------------------------------------------------------------------------------------------


def _has_key_groups(state: OperatorState) -> bool:
    return any(subtask.holds(*BY_KEY_GROUP) for subtask in state.subtasks)


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


def _by_owner(state: OperatorState, target: OperatorTarget, name: str) -> list[list[KeyedPart]]:
    """The parts of each new subtask in a field, by key group, the full part first."""
    groups = by_key_group(part for subtask in state.subtasks for part in getattr(subtask, name))
    for group, own in groups.items():
        full_first = [part.kind is PartKind.FULL for part in own] == [True] + [False] * (len(own) - 1)
        if not full_first or not 0 <= group < state.max_parallelism or len({part.order for part in own}) < len(own):
            raise CorruptCheckpointError(f"The parts of key group {group} of operator '{state.name}' do not fit.")
    if not groups:
        return [[] for _ in range(target.parallelism)]
    ranges = [key_group_range(state.max_parallelism, target.parallelism, i) for i in range(target.parallelism)]
    return [[part for group in own for part in groups.get(group, ())] for own in ranges]


# -- state without an operator in the program --------------------------------------------------------------------------


def _has_state(subtask: SubtaskState) -> bool:
    """Whether dropping the subtask's state loses anything; its task's watermarks alone do not count."""
    return subtask.holds(*BY_KEY_GROUP, "operator_state", "source", "in_flight", *LISTS)


def _has_own_state(subtask: SubtaskState) -> bool:
    """Whether there is state whose layout matters."""
    return subtask.holds(*BY_KEY_GROUP, "operator_state")


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
