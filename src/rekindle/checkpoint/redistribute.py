"""Redistribute lists at a restore: a new subtask's share of the old subtasks' elements. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from rekindle.checkpoint.part_formats import (
    ListDistribution,
    OperatorStatePart,
    SourceState,
    SplitState,
    TaskState,
    decode_operator_part,
    encode_operator_part,
)
from rekindle.errors import IncompatibleStateError, SerializationError

T = TypeVar("T")


def source_share(states: Sequence[SourceState], name: str, parallelism: int, subtask: int) -> SourceState:
    """One new subtask's share of splits if the parallelism differs: all splits, pooled in order and dealt in turn.

    >>> old = [SourceState([SplitState(b"a", b""), SplitState(b"b", b"")]), SourceState([SplitState(b"c", b"")])]
    >>> [split.split for split in source_share(old, "numbers", 3, 1).splits]
    [b'b']
    """
    _check_splits(states, name, parallelism)
    return SourceState([split for state in states for split in state.splits][subtask::parallelism])


def whole_source(
    states: Sequence[SourceState], own: SourceState | None, name: str, parallelism: int, subtask: int
) -> SourceState:
    """The state that a new subtask of a source function sees: the newest position of every split.

    `own` is the subtask's own state if the parallelism is unchanged, else None: a position without a split belongs to
    its subtask.
    """
    if own is None:
        _check_splits(states, name, parallelism)
    unsplit = [split for split in own.splits if split.split is None] if own is not None else []
    in_flight = (
        own.in_flight if own is not None else [each for s in states[subtask::parallelism] for each in s.in_flight]
    )
    schema = next((state.in_flight_schema for state in states if state.in_flight), b"")
    of_others = own.in_flight_of_others if own is not None else bool(in_flight)
    return SourceState(
        unsplit + newest_splits(states),
        in_flight=in_flight,
        in_flight_schema=schema,
        in_flight_of_others=of_others,
    )


def newest_splits(states: Sequence[SourceState]) -> list[SplitState]:
    """Each split once, with its newest position: a subtask may hold an old position of a split that another one reads.

    >>> newest_splits([SourceState([SplitState(b"a", b"5", 1)]), SourceState([SplitState(b"a", b"9", 2)])])
    [SplitState(split=b'a', position=b'9', moved_at=2)]
    """
    newest: dict[bytes, SplitState] = {}
    for split in (split for state in states for split in state.splits):
        if split.split is not None:
            known = newest.get(split.split)
            newest[split.split] = split if known is None or split.moved_at >= known.moved_at else known
    return list(newest.values())


def _check_splits(states: Sequence[SourceState], name: str, parallelism: int) -> None:
    if any(split.split is None for state in states for split in state.splits):
        raise IncompatibleStateError(
            f"Source '{name}' keeps an offset per subtask, not per split, so it cannot be restored with parallelism "
            f"{parallelism}: restore it with the parallelism it was saved with, or collect with split=..."
        )


def task_share(states: Sequence[TaskState]) -> TaskState:
    """A new task's state if the parallelism differs: the minimum watermark, so that no late record becomes early (I6).

    >>> task_share([TaskState(10, idle=True, details=b"x"), TaskState(7)])
    TaskState(watermark=7, idle=False, details=None)
    """
    return TaskState(min(state.watermark for state in states), all(state.idle for state in states))


def split_share(lists: Sequence[Sequence[T]], parallelism: int, subtask: int) -> list[T]:
    """One subtask's share of split lists: all elements, in order, dealt in turn; its own list if parallelism is kept.

    >>> old = [["a", "b", "c"], ["d"]]
    >>> [split_share(old, 3, subtask) for subtask in range(3)]
    [['a', 'd'], ['b'], ['c']]
    >>> split_share(old, 2, 1)
    ['d']
    """
    if len(lists) == parallelism:
        return list(lists[subtask])
    return union_share(lists)[subtask::parallelism]


def whole_share(lists: Sequence[Sequence[T]], parallelism: int, subtask: int) -> list[T]:
    """One subtask's share of lists that stay whole: the list of old subtask i goes to new subtask i % parallelism.

    Committables need this: those of one subtask may share an outside transaction, and are committed in their order.

    >>> old = [["a", "b"], ["c"], ["d"]]
    >>> [whole_share(old, 2, subtask) for subtask in range(2)]
    [['a', 'b', 'd'], ['c']]
    >>> whole_share(old, 4, 3)
    []
    """
    return union_share(lists[subtask::parallelism])


def union_share(lists: Sequence[Sequence[T]]) -> list[T]:
    """Every subtask's share of union lists: all elements.

    >>> union_share([["a"], ["b"]])
    ['a', 'b']
    """
    return [element for elements in lists for element in elements]


def broadcast_share(lists: Sequence[Sequence[T]], subtask: int) -> list[T]:
    """One subtask's share of broadcast state, which all old subtasks held alike: the copy of one of them.

    >>> broadcast_share([["a"], ["a"]], 2)
    ['a']
    """
    return list(lists[subtask % len(lists)])


def operator_share(parts: Sequence[bytes], parallelism: int, subtask: int) -> bytes:
    """One new subtask's share of operator state; `parts` are those of all old subtasks, in order.

    A state that subtasks wrote under different schemas becomes a part per schema.
    """
    by_subtask = [decode_operator_part(data) for data in parts]
    names = dict.fromkeys(part.name for states in by_subtask for part in states)
    result: list[OperatorStatePart] = []
    for name in names:
        held = [[part for part in states if part.name == name] for states in by_subtask]
        if len({part.distribution for own in held for part in own}) > 1:
            raise SerializationError(f"Operator state '{name}' was saved in different ways by different subtasks.")
        result.extend(_shared(held, parallelism, subtask))
    return encode_operator_part(result)


def _shared(held: Sequence[Sequence[OperatorStatePart]], parallelism: int, subtask: int) -> Iterator[OperatorStatePart]:
    examples = {part.schema: part for own in held for part in own}
    if next(iter(examples.values())).distribution is ListDistribution.BROADCAST:
        yield from broadcast_share([own for own in held if own], subtask)
        return
    for schema, example in examples.items():
        lists = [[entry for part in own if part.schema == schema for entry in part.entries] for own in held]
        union = example.distribution is ListDistribution.UNION
        entries = union_share(lists) if union else split_share(lists, parallelism, subtask)
        yield msgspec.structs.replace(example, entries=entries)
