"""The shares of a checkpoint that each subtask gets at another parallelism."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from rekindle.checkpoint.manifest import KeyedPart, Manifest, ManifestKind, OperatorState, PartKind, SubtaskState
from rekindle.checkpoint.part_formats import (
    ListDistribution,
    OperatorStatePart,
    SourceState,
    SplitState,
    TaskState,
    decode_operator_part,
    encode_operator_part,
    holds_union,
)
from rekindle.checkpoint.read_state import read_parts, read_subtask
from rekindle.checkpoint.redistribute import operator_share
from rekindle.checkpoint.rescale import (
    OperatorTarget,
    SubtaskShare,
    assign,
    assign_operator,
    regrouped_operators,
    stored_max_parallelism,
)
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.errors import CorruptCheckpointError, IncompatibleStateError, SerializationError
from rekindle.key_groups import key_group_range, subtask_for_key_group

GROUPS = 12


def operator(*subtasks: SubtaskState, max_parallelism: int = GROUPS, uid: str = "op") -> OperatorState:
    return OperatorState(uid, "count", len(subtasks), max_parallelism, list(subtasks))


def target(parallelism: int, max_parallelism: int = GROUPS, uid: str = "op") -> OperatorTarget:
    return OperatorTarget(uid, "count", parallelism, max_parallelism)


def manifest(*operators: OperatorState) -> Manifest:
    return Manifest(ManifestKind.SAVEPOINT, 7, "id", "orders", "t", 1, 0, operators=list(operators))


def keyed_operator(parallelism: int) -> OperatorState:
    """Each key group has a full part and a delta, and timers in every second one."""
    return operator(
        *(
            SubtaskState(
                subtask,
                keyed=[
                    part
                    for group in own
                    for part in (
                        KeyedPart(group, PartKind.DELTA, 2, b"delta %d" % group),
                        KeyedPart(group, PartKind.FULL, 1, b"full %d" % group),
                    )
                ],
                timers=[KeyedPart(group, PartKind.FULL, 2, b"timers %d" % group) for group in own if group % 2],
            )
            for subtask in range(parallelism)
            if (own := key_group_range(GROUPS, parallelism, subtask))
        )
    )


def read(restore: SubtaskShare) -> Any:
    return read_subtask(MemoryStore(), "", restore, "count")


# -- key groups --------------------------------------------------------------------------------------------------------


@given(st.integers(1, 300).flatmap(lambda m: st.tuples(st.just(m), st.integers(1, m))))
def test_the_formula_is_the_one_that_routes_records(sizes: tuple[int, int]) -> None:
    max_parallelism, parallelism = sizes
    for subtask in range(parallelism):
        own = key_group_range(max_parallelism, parallelism, subtask)
        assert all(subtask_for_key_group(g, max_parallelism, parallelism) == subtask for g in own)


@pytest.mark.parametrize("before", [1, 2, 5, 12])
@pytest.mark.parametrize("after", [1, 2, 3, 5, 12])
def test_keyed_state_and_timers_go_by_key_group(before: int, after: int) -> None:
    restores = assign_operator(keyed_operator(before), target(after))
    assert len(restores) == after
    store = MemoryStore()
    for subtask, restore in enumerate(restores):
        own = key_group_range(GROUPS, after, subtask)
        assert list(read_parts(store, "", restore.own.keyed)) == [
            pair for group in own for pair in ((group, b"full %d" % group), (group, b"delta %d" % group))
        ]
        assert list(read_parts(store, "", restore.own.timers)) == [(g, b"timers %d" % g) for g in own if g % 2]
        assert (restore.uid, restore.subtask, restore.parallelism) == ("op", subtask, after)
        assert restore.rescaled == (before != after)


def test_another_number_of_key_groups_is_refused_by_name() -> None:
    with pytest.raises(IncompatibleStateError, match=r"'count' has maximum parallelism 24.*set_max_parallelism\(12\)"):
        assign_operator(keyed_operator(2), target(2, 24))
    with pytest.raises(IncompatibleStateError, match=r"'count' cannot run with parallelism 13: its state has 12 key"):
        assign_operator(keyed_operator(2), target(13, 128))
    assert stored_max_parallelism(manifest(keyed_operator(2))) == {"op": 12}


def test_without_keys_the_number_of_key_groups_does_not_matter() -> None:
    state = operator(SubtaskState(0, operator_state=encode_operator_part([])))
    assert len(assign_operator(state, target(20, 256))) == 20


@pytest.mark.parametrize(
    "parts",
    [
        [KeyedPart(3, PartKind.DELTA, 1, b"")],
        [KeyedPart(3, PartKind.FULL, 1, b""), KeyedPart(3, PartKind.FULL, 2, b"")],
        [KeyedPart(3, PartKind.FULL, 1, b""), KeyedPart(3, PartKind.DELTA, 1, b"")],
        [KeyedPart(GROUPS, PartKind.FULL, 1, b"")],
        [KeyedPart(-1, PartKind.FULL, 1, b"")],
    ],
)
def test_parts_that_do_not_fit_are_refused(parts: list[KeyedPart]) -> None:
    with pytest.raises(CorruptCheckpointError, match=r"key group -?\d+ of operator 'count' do not fit"):
        assign_operator(operator(SubtaskState(0, keyed=parts)), target(1))


def test_a_lost_subtask_is_refused() -> None:
    whole = keyed_operator(3)
    with pytest.raises(CorruptCheckpointError, match="lacks subtasks of operator 'count'"):
        assign_operator(msgspec.structs.replace(whole, subtasks=whole.subtasks[:2]), target(3))


# -- operator state ----------------------------------------------------------------------------------------------------


def lists(
    split: list[bytes] | None = None, union: list[bytes] | None = None, broadcast: list[bytes] | None = None
) -> bytes:
    kinds = ((ListDistribution.SPLIT, split), (ListDistribution.UNION, union), (ListDistribution.BROADCAST, broadcast))
    return encode_operator_part(
        [OperatorStatePart(kind, kind, "list", entries, b"") for kind, entries in kinds if entries is not None]
    )


def entries(part: bytes | None) -> dict[str, list[bytes]]:
    assert part is not None
    return {state.name: state.entries for state in decode_operator_part(part)}


def lists_operator() -> OperatorState:
    parts = [lists([b"a", b"b", b"c"], [b"u"], [b"k", b"v"]), lists([b"d"], [b"w"], [b"k", b"v"])]
    return operator(*(SubtaskState(n, operator_state=part, union=holds_union(part)) for n, part in enumerate(parts)))


def test_lists_are_dealt_united_and_broadcast() -> None:
    both = {"union": [b"u", b"w"], "broadcast": [b"k", b"v"]}
    expected = {
        1: [[b"a", b"b", b"c", b"d"]],
        2: [[b"a", b"b", b"c"], [b"d"]],
        3: [[b"a", b"d"], [b"b"], [b"c"]],
    }
    for parallelism, splits in expected.items():
        restored = [read(restore) for restore in assign_operator(lists_operator(), target(parallelism))]
        assert [entries(r.operator_state) for r in restored] == [{"split": split, **both} for split in splits]


def test_without_union_a_subtask_needs_only_its_own() -> None:
    parts = [lists([b"a"]), lists([b"b"])]
    state = operator(*(SubtaskState(n, operator_state=part) for n, part in enumerate(parts)))
    restores = assign_operator(state, target(2))
    assert [restore.saved("operator_state", of_all=True) for restore in restores] == [[part] for part in parts]
    assert [entries(read(restore).operator_state) for restore in restores] == [{"split": [b"a"]}, {"split": [b"b"]}]


def test_a_subtask_without_operator_state_keeps_its_place() -> None:
    state = operator(
        SubtaskState(0), SubtaskState(1, operator_state=lists([b"a", b"b"], [b"u"], [b"k", b"v"]), union=True)
    )
    for parallelism, splits in {2: [[], [b"a", b"b"]], 3: [[b"a"], [b"b"], []]}.items():
        restored = [read(restore) for restore in assign_operator(state, target(parallelism))]
        assert [entries(r.operator_state)["split"] for r in restored] == splits
        assert all(entries(r.operator_state)["union"] == [b"u"] for r in restored)
        assert all(entries(r.operator_state)["broadcast"] == [b"k", b"v"] for r in restored)
    only_finished = operator(SubtaskState(0), SubtaskState(1))
    assert read(assign_operator(only_finished, target(2))[0]).operator_state is None


def test_one_subtask_at_a_time_gives_what_all_at_once_gives() -> None:
    parts = [lists([b"%d-%d" % (s, n) for n in range(s)], [b"u%d" % s], [b"k", b"v"]) for s in range(4)]
    state = operator(*(SubtaskState(n, operator_state=part, union=True) for n, part in enumerate(parts)))
    for parallelism in (1, 3, 4, 7):
        alone = [read(restore).operator_state for restore in assign_operator(state, target(parallelism))]
        assert alone == [operator_share(parts, parallelism, subtask) for subtask in range(parallelism)]


def test_raw_state_and_committables_go_once_each() -> None:
    state = operator(
        SubtaskState(0, raw_operator=[b"r1", b"r2"], committables=[b"c1", b"c2", b"c3"]),
        SubtaskState(1, committables=[b"c4"]),
    )
    same = [read(restore) for restore in assign_operator(state, target(2))]
    assert [[*map(b"".join, r.committables)] for r in same] == [[b"c1", b"c2", b"c3"], [b"c4"]]
    assert [r.raw_operator for r in same] == [[b"r1", b"r2"], []]
    other = [read(restore) for restore in assign_operator(state, target(3))]
    assert [[*map(b"".join, r.committables)] for r in other] == [[b"c1", b"c2", b"c3"], [b"c4"], []]
    assert [r.raw_operator for r in other] == [[b"r1"], [b"r2"], []]


# -- sources, tasks, finished ------------------------------------------------------------------------------------------


def source(*splits: tuple[bytes | None, bytes]) -> bytes:
    return SourceState([SplitState(*split) for split in splits]).encode()


def test_splits_are_pooled_and_dealt() -> None:
    state = operator(
        SubtaskState(0, source=source((b"a", b"1"), (b"b", b"2"))), SubtaskState(1, source=source((b"c", b"3")))
    )
    dealt = {
        2: [[b"a", b"b"], [b"c"]],
        1: [[b"a", b"b", b"c"]],
        4: [[b"a"], [b"b"], [b"c"], []],
    }
    for parallelism, splits in dealt.items():
        restored = [read(restore).source for restore in assign_operator(state, target(parallelism))]
        assert [[split.split for split in s.splits] for s in restored] == splits
    assert sorted(split.position for s in restored for split in s.splits) == [b"1", b"2", b"3"]


def test_i8_an_offset_without_a_split_stays_with_its_subtask() -> None:
    state = operator(SubtaskState(0, source=source((None, b"5"))), SubtaskState(1, source=source((None, b"6"))))
    same = [read(restore).source for restore in assign_operator(state, target(2))]
    assert [s.splits for s in same] == [[SplitState(None, b"5")], [SplitState(None, b"6")]]
    with pytest.raises(IncompatibleStateError, match=r"Source 'count' keeps an offset per subtask.*split="):
        read(assign_operator(state, target(1))[0])
    done = operator(*(msgspec.structs.replace(s, finished=True) for s in state.subtasks))
    assert read(assign_operator(done, target(1))[0]).source == SourceState([])


def test_i6_watermarks_are_the_minimum_on_another_parallelism_and_the_same_else() -> None:
    tasks = [TaskState(10, True, b"details of 0"), TaskState(7, False, b"details of 1")]
    state = operator(*(SubtaskState(n, task=task.encode()) for n, task in enumerate(tasks)))
    assert [read(restore).task for restore in assign_operator(state, target(2))] == tasks
    assert [read(restore).task for restore in assign_operator(state, target(3))] == [TaskState(7, False, None)] * 3
    idle = operator(*(SubtaskState(n, task=TaskState(n, True).encode()) for n in range(2)))
    assert read(assign_operator(idle, target(1))[0]).task == TaskState(0, True)


def test_i9_finished_is_state() -> None:
    half = operator(SubtaskState(0, finished=True), SubtaskState(1))
    assert [r.own.finished for r in assign_operator(half, target(2))] == [True, False]
    assert [r.own.finished for r in assign_operator(half, target(3))] == [False] * 3
    whole = operator(SubtaskState(0, finished=True), SubtaskState(1, finished=True))
    assert [r.own.finished for r in assign_operator(whole, target(3))] == [True] * 3


@pytest.mark.parametrize("decode", [SourceState.decode, TaskState.decode])
def test_damaged_states_are_refused(decode: Any) -> None:
    with pytest.raises(SerializationError, match="damaged"):
        decode(b"\xc1")


# -- which operators ---------------------------------------------------------------------------------------------------


def test_state_that_nobody_takes_is_refused_by_name_unless_allowed() -> None:
    gone = msgspec.structs.replace(keyed_operator(1), uid="gone", name="old count")
    state = manifest(keyed_operator(2), gone)
    with pytest.raises(IncompatibleStateError, match=r"savepoint 7 has state of the operator 'old count' \(uid gone\)"):
        assign(state, [target(2)])
    assert set(assign(state, [target(2)], allow_non_restored_state=True)) == {"op"}


@pytest.mark.parametrize(
    "lost",
    [
        {"keyed": [KeyedPart(0, PartKind.FULL, 1, b"")]},
        {"timers": [KeyedPart(0, PartKind.FULL, 1, b"")]},
        {"raw_keyed": [KeyedPart(0, PartKind.FULL, 1, b"")]},
        {"operator_state": b"x"},
        {"raw_operator": [b"x"]},
        {"source": b"x"},
        {"committables": [b"x"]},
    ],
)
def test_each_kind_of_state_counts(lost: Any) -> None:
    with pytest.raises(IncompatibleStateError):
        assign(manifest(operator(SubtaskState(0, **lost))), [])


def test_operators_without_state_may_go_and_come() -> None:
    stateless = operator(SubtaskState(0, finished=True, task=b"watermarks"), uid="gone")
    restored = assign(manifest(stateless, keyed_operator(1)), [target(1), target(1, uid="new")])
    assert set(restored) == {"op"}


def test_a_restore_is_small_enough_to_send() -> None:
    restore = assign_operator(keyed_operator(3), target(2))[0]
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(restore), type=SubtaskShare) == restore


# -- other records than before -----------------------------------------------------------------------------------------


def chain_of_operators(*parallelisms: int) -> dict[str, OperatorTarget]:
    """A source, an operator behind `rescale()`, one behind that, one behind a key."""
    uids = ("source", "rescaled", "forward", "keyed")
    before = ((), ("source",), ("rescaled",), ())
    return {
        uid: OperatorTarget(uid, uid, parallelism, GROUPS, senders_to_some=senders)
        for uid, parallelism, senders in zip(uids, parallelisms, before, strict=True)
    }


@pytest.mark.parametrize(
    ("new", "regrouped"),
    [
        ((2, 2, 2, 2), set()),
        ((3, 2, 2, 2), {"source", "rescaled", "forward"}),
        ((2, 3, 3, 2), {"rescaled", "forward"}),
        ((2, 2, 2, 3), {"keyed"}),
    ],
)
def test_operators_behind_a_rescaled_one_get_other_records(new: tuple[int, ...], regrouped: set[str]) -> None:
    saved = manifest(*(operator(SubtaskState(0), SubtaskState(1), uid=uid) for uid in chain_of_operators(*new)))
    assert regrouped_operators(saved, chain_of_operators(*new)) == regrouped
    for uid, shares in assign(saved, chain_of_operators(*new).values()).items():
        assert {share.regrouped for share in shares} == {uid in regrouped}
        assert all(share.regrouped_senders == sorted(regrouped) for share in shares)


def test_a_subtask_that_gets_other_records_takes_the_lowest_watermark() -> None:
    subtasks = [SubtaskState(number, task=TaskState(10 * number + 7, details=b"x").encode()) for number in range(2)]
    saved = operator(*subtasks)
    own = [read(share).task for share in assign_operator(saved, target(2))]
    assert own == [TaskState(7, details=b"x"), TaskState(17, details=b"x")]
    regrouped = [read(share).task for share in assign_operator(saved, target(2), frozenset({"op"}))]
    assert regrouped == [TaskState(7), TaskState(7)]
