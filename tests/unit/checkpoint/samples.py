"""Small checkpoints for tests, made in the same way as a job makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rekindle.checkpoint.manifest import Manifest, ManifestKind, OperatorState, PartKind, SubtaskState
from rekindle.checkpoint.ownership import Claim, claim_first
from rekindle.checkpoint.parts import CapturedOperator, GroupParts, on_top_of, write_subtask
from rekindle.checkpoint.paths import StateFileName, checkpoint_folder, shared_reference, timeline_folder
from rekindle.checkpoint.publish import publish
from rekindle.checkpoint.statefile import StateFileWriter
from rekindle.checkpoint.store.port import Store

JOB_ID = "0a1b2c3d" * 4
NOW_MS = 1_700_000_000_000


def take_over(store: Store, job_name: str = "orders", driver: str = "host-a:17") -> Claim:
    return claim_first(store, job_name, JOB_ID, driver, NOW_MS)


def manifest_of(
    claim: Claim, checkpoint_id: int, operators: Sequence[OperatorState] = (), timestamp_ms: int = NOW_MS
) -> Manifest:
    return Manifest(
        ManifestKind.CHECKPOINT,
        checkpoint_id,
        claim.job_id,
        claim.job_name,
        claim.timeline,
        claim.attempt,
        timestamp_ms,
        operators=list(operators),
    )


def captured_groups(
    subtask: int, checkpoint_id: int, keyed: GroupParts, kind: PartKind = PartKind.FULL
) -> CapturedOperator:
    """Keyed state as a task captures it."""
    captured = CapturedOperator(subtask, checkpoint_id)
    captured.add_groups("keyed", keyed, kind)
    return captured


def written(
    store: Store,
    claim: Claim,
    parts: CapturedOperator,
    uid: str = "op",
    base: SubtaskState | None = None,
    inline_bytes: int = 0,
) -> SubtaskState:
    """Write a subtask's parts as a slot does, and put them on top of the base."""
    name = StateFileName.of(parts.checkpoint_id, claim.attempt, uid, parts.subtask)
    root = timeline_folder(claim.job_name, claim.timeline)
    writer = StateFileWriter(store, root, shared_reference(name), inline_bytes=inline_bytes)
    return on_top_of(base, write_subtask(writer, parts))


def published(
    store: Store,
    claim: Claim,
    checkpoint_id: int,
    keyed: Iterable[tuple[int, bytes]] = ((0, b"zero"), (1, b"one")),
    base: Manifest | None = None,
) -> Manifest:
    """A checkpoint of one operator of one subtask; with a base it holds deltas on top of it."""
    parts = captured_groups(0, checkpoint_id, list(keyed), PartKind.DELTA if base else PartKind.FULL)
    below = base.operators[0].subtasks[0] if base else None
    state = written(store, claim, parts, base=below)
    manifest = manifest_of(claim, checkpoint_id, [OperatorState("op", "count", 1, 128, [state])])
    publish(store, claim, manifest)
    return manifest


def contents(store: Store) -> Mapping[str, bytes]:
    return {entry.path: store.read(entry.path) for entry in store.list()}


def folder(manifest: Manifest) -> str:
    return checkpoint_folder(manifest.job_name, manifest.timeline, manifest.checkpoint_id)


def state_file(manifest: Manifest) -> str:
    (file,) = manifest.files()
    return f"orders/{manifest.timeline}/{file}"
