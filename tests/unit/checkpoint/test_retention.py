"""Files that a kept checkpoint needs are never deleted; files that no checkpoint needs are."""

from __future__ import annotations

import hypothesis.strategies as st
import msgspec
from hypothesis import given

from rekindle.checkpoint.load_checkpoint import load
from rekindle.checkpoint.manifest import (
    FileRef,
    KeyedPart,
    Manifest,
    ManifestKind,
    OperatorState,
    PartKind,
    SubtaskState,
)
from rekindle.checkpoint.ownership import claim_next
from rekindle.checkpoint.paths import StateFileName, checkpoint_folder, metadata_path, shared_reference
from rekindle.checkpoint.retention import delete_files, discarded_files, half_written_files, swept_files
from rekindle.checkpoint.store.memory import MemoryStore
from tests.support.listed_checkpoints import list_checkpoints
from tests.unit.checkpoint.samples import NOW_MS, captured_groups, contents, manifest_of, published, take_over, written

TIMELINE, OTHER = "00000001-0a1b2c3d", "00000002-0a1b2c3d"


def manifest(checkpoint_id: int, files: list[int], timeline: str = TIMELINE, savepoint: bool = False) -> Manifest:
    """A checkpoint that needs the state files that the checkpoints `files` wrote."""
    keyed = [
        KeyedPart(0, PartKind.FULL, n, FileRef(shared_reference(StateFileName.of(n, 1, "op", 0)), 0, 1, 0))
        for n in files
    ]
    return Manifest(
        ManifestKind.SAVEPOINT if savepoint else ManifestKind.CHECKPOINT,
        checkpoint_id,
        "id",
        "orders",
        timeline,
        1,
        0,
        operators=[OperatorState("op", "count", 1, 128, [SubtaskState(0, keyed=keyed)])],
    )


def path_of(number: int, timeline: str = TIMELINE) -> str:
    return f"orders/{timeline}/shared/{number}-1-op-0.state"


@st.composite
def histories(draw: st.DrawFn) -> list[Manifest]:
    """Checkpoints of which each needs its own file and some of those before; savepoints and other timelines between."""
    count = draw(st.integers(0, 8))
    result = []
    for number in range(1, count + 1):
        older = draw(st.sets(st.integers(1, number), max_size=4))
        timeline = draw(st.sampled_from([TIMELINE, TIMELINE, TIMELINE, OTHER]))
        result.append(manifest(number, sorted({*older, number}), timeline, draw(st.booleans()) and number % 3 == 0))
    return result


@given(histories(), st.sets(st.integers(1, 8)))
def test_never_what_a_kept_checkpoint_needs(history: list[Manifest], kept_ids: set[int]) -> None:
    deletion = discarded_files(history, TIMELINE, kept_ids)
    own = [m for m in history if m.kind is ManifestKind.CHECKPOINT and m.timeline == TIMELINE]
    dropped = [m for m in own if m.checkpoint_id in deletion.checkpoint_ids]
    kept = [m for m in own if m not in dropped]
    assert {m.checkpoint_id for m in kept} == kept_ids & {m.checkpoint_id for m in own}
    assert deletion.manifests == [
        metadata_path(checkpoint_folder("orders", TIMELINE, m.checkpoint_id)) for m in dropped
    ]
    # Exactly the files that only dropped checkpoints needed are deleted.
    needed = {f"orders/{TIMELINE}/{file}" for m in kept for file in m.files()}
    gone = set(deletion.files)
    assert not gone & needed
    assert gone | needed >= {f"orders/{TIMELINE}/{file}" for m in dropped for file in m.files()}
    assert all(path.startswith(f"orders/{TIMELINE}/shared/") for path in gone)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=12), st.integers(1, 3))
def test_after_any_life_every_kept_checkpoint_still_loads(steps: list[tuple[bool, int]], retained: int) -> None:
    """Checkpoints full or on top of the last, with deletion after each, on a real store."""
    store = MemoryStore()
    claim = take_over(store)
    completed: list[Manifest] = []
    for number, (delta, group) in enumerate(steps, start=1):
        base = completed[-1] if delta and completed else None
        keyed = [(group, b"%d" % number)] if base else [(n, b"%d" % number) for n in range(4)]
        completed.append(published(store, claim, number, keyed, base))
        deletion = discarded_files(completed, claim.timeline, {m.checkpoint_id for m in completed[-retained:]})
        delete_files(store, claim, deletion)
        completed = [m for m in completed if m.checkpoint_id not in deletion.checkpoint_ids]
        assert len(completed) == min(number, retained)
        for path in list_checkpoints(store, "orders"):
            load(store, path, deep=True)
    needed = {f"orders/{claim.timeline}/{file}" for m in completed for file in m.files()}
    assert {path for path in contents(store) if "/shared/" in path} == needed


def test_shared_files_go_with_the_last_that_needs_them() -> None:
    history = [manifest(1, [1]), manifest(2, [1, 2]), manifest(3, [1, 3]), manifest(4, [4])]
    assert discarded_files(history[:2], TIMELINE, {2}).files == []
    assert discarded_files(history[1:3], TIMELINE, {3}).files == [path_of(2)]
    assert discarded_files(history[2:], TIMELINE, {4}).files == [path_of(1), path_of(3)]


def test_savepoints_are_the_users() -> None:
    history = [manifest(1, [1], savepoint=True), manifest(2, [2]), manifest(3, [3], savepoint=True), manifest(4, [4])]
    deletion = discarded_files(history, TIMELINE, {4})
    assert deletion.checkpoint_ids == [2]
    assert deletion.files == [path_of(2)]


def test_none_retained_removes_all_of_the_own_timeline() -> None:
    history = [manifest(1, [1], OTHER), manifest(2, [2]), manifest(3, [2, 3])]
    deletion = discarded_files(history, TIMELINE, set())
    assert deletion.checkpoint_ids == [2, 3]
    assert deletion.files == [path_of(2), path_of(3)]


# -- orphans -----------------------------------------------------------------------------------------------------------


def name(checkpoint_id: int, attempt: int, timeline: str = TIMELINE) -> str:
    return f"orders/{timeline}/{shared_reference(StateFileName.of(checkpoint_id, attempt, 'op', 0))}"


def test_orphans_are_of_the_past_and_of_nobody() -> None:
    kept = [manifest(5, [5])]
    gone = [
        name(6, 1),  # of a crashed attempt, never completed
        name(4, 2) + ".0a1b2c3d.part",  # half written by it
        f"orders/{TIMELINE}/chk-7/_metadata.0a1b2c3d.part",  # manifests are written one by one, and none is now
        f"orders/{TIMELINE}/chk-5/_stopped.0a1b2c3d.part",
        f"orders/{TIMELINE}/_begun.0a1b2c3d.part",
    ]
    stays = [
        name(5, 1),  # needed
        name(8, 3),  # under way
        name(9, 3) + ".0a1b2c3d.part",  # being written
        name(6, 4),  # of a newer attempt
        name(6, 1, OTHER),  # of another timeline
        f"orders/{TIMELINE}/chk-5/_metadata",
        f"orders/{OTHER}/chk-8/_metadata.0a1b2c3d.part",
        f"orders/{TIMELINE}/notes.txt",
        "orders/owners/00000001",
        "another/shared/1-1-op-0.state",
    ]
    assert sorted(swept_files([*stays, *gone], kept, "orders", TIMELINE, attempt=3).files) == sorted(gone)


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), max_size=15),
    histories(),
    st.integers(1, 4),
)
def test_orphans_are_never_needed(files: list[tuple[int, int]], kept: list[Manifest], attempt: int) -> None:
    paths = [name(checkpoint_id, of_attempt) for checkpoint_id, of_attempt in files]
    gone = set(swept_files(paths, kept, "orders", TIMELINE, attempt).files)
    needed = {f"orders/{m.timeline}/{file}" for m in kept if m.kind is ManifestKind.CHECKPOINT for file in m.files()}
    assert not gone & needed
    for path, (_, of_attempt) in zip(paths, files, strict=True):
        assert (path in gone) == (of_attempt < attempt and path not in needed)


def test_of_older_timelines_only_what_is_half_written_is_abandoned() -> None:
    """An older driver has lost the job; a newer driver may still be writing its files."""
    older, own, newer = (f"{number:08d}-0a1b2c3d" for number in (1, 3, 4))
    half = ".0a1b2c3d.part"
    gone = [
        f"orders/{older}/chk-7/_metadata{half}",
        f"orders/{older}/_begun{half}",
        name(4, 2, older) + half,
        f"orders/owners/00000002{half}",
    ]
    stays = [
        f"orders/{older}/chk-7/_metadata",
        name(4, 2, older),
        f"orders/{own}/chk-8/_metadata{half}",
        f"orders/{newer}/chk-8/_metadata{half}",
        "orders/owners/00000002",
        f"orders/owners/00000003{half}",
        f"orders/owners/00000004{half}",
        f"orders/notes{half}",
        f"another/{older}/chk-7/_metadata{half}",
    ]
    assert sorted(half_written_files([*stays, *gone], "orders", own, attempt=3).files) == sorted(gone)


def test_a_crashed_attempt_leaves_nothing_behind_after_the_next_one_swept() -> None:
    store = MemoryStore()
    first = take_over(store)
    done = published(store, first, 1)
    written(store, first, captured_groups(0, 2, [(0, b"lost")]))
    second = claim_next(store, first, NOW_MS)
    current = written(store, second, captured_groups(0, 3, [(0, b"under way")]))
    swept = swept_files([e.path for e in store.list()], [done], "orders", second.timeline, second.attempt)
    delete_files(store, second, swept)
    assert [path.rpartition("/")[2] for path in swept.files] == ["2-1-op-0.state"]
    operators = [msgspec.structs.replace(done.operators[0], subtasks=[current])]
    assert manifest_of(second, 3, operators).files().keys() <= {
        path.removeprefix(f"orders/{second.timeline}/") for path in contents(store)
    }
    load(store, list_checkpoints(store, "orders")[-1], deep=True)
