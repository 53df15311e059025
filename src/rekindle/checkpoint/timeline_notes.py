"""Notes in a timeline's folder: `_begun`, `_completed`, `_stopped`. Msgpack with a version, never pickle (I20, I21)."""

from __future__ import annotations

from typing import Final, Protocol, TypeVar

import msgspec

from rekindle import config
from rekindle.checkpoint.ownership import Claim
from rekindle.checkpoint.paths import begun_path, checkpoint_folder, completed_path, stopped_path, timeline_folder
from rekindle.checkpoint.store.port import Store, put_once
from rekindle.errors import CheckpointError, CorruptCheckpointError

FORMAT_VERSION: Final = 1


class Note(Protocol):
    """The field that every note has."""

    @property
    def version(self) -> int:
        """The version of the note's format."""


N = TypeVar("N", bound=Note)

encode = msgspec.msgpack.Encoder().encode


def read_note(store: Store, path: str, kind: type[N], advice: str) -> N:
    """Read a note; CorruptCheckpointError, with `advice`, if it is damaged or has another format."""
    try:
        note = msgspec.msgpack.decode(store.read(path), type=kind)
    except msgspec.DecodeError as error:
        raise CorruptCheckpointError(f"The note {path} in {store.url} is damaged: {advice}.") from error
    if note.version != FORMAT_VERSION:
        raise CorruptCheckpointError(
            f"The note {path} in {store.url} has format {note.version}, this version of Rekindle knows "
            f"{FORMAT_VERSION}: use the version that wrote it, or {advice}."
        )
    return note


class Beginning(msgspec.Struct, frozen=True):
    """The checkpoint or savepoint that a run begins from."""

    #: A checkpoint's folder, relative to the job's, or a URL; None: the run begins anew.
    origin: str | None = None
    #: The origin's timeline and id: older checkpoints of that timeline belong to the run's history too.
    timeline: str = ""
    checkpoint_id: int = 0
    #: Whether the run begins anew because the user asked for no checkpoint.
    on_purpose: bool = False
    version: int = FORMAT_VERSION


def note_beginning(store: Store, claim: Claim, beginning: Beginning) -> None:
    """Note what a run begins from, before the run acts; a later note replaces an earlier one.

    >>> from rekindle.checkpoint.ownership import claim_first
    >>> from rekindle.checkpoint.store.memory import MemoryStore
    >>> store = MemoryStore()
    >>> claim = claim_first(store, "orders", "0a1b", "host:17", 0)
    >>> note_beginning(store, claim, Beginning("00000001-0a1b2c3d/chk-7", "00000001-0a1b2c3d", 7))
    >>> beginning_of(store, f"orders/{claim.timeline}").origin
    '00000001-0a1b2c3d/chk-7'
    """
    store.put(begun_path(timeline_folder(claim.job_name, claim.timeline)), encode(beginning))


def beginning_of(store: Store, timeline: str) -> Beginning:
    """Read the note of the beginning in a timeline's folder."""
    advice = f"set {config.RECOVERY_PATH.key} to the checkpoint or savepoint to go on from"
    return read_note(store, begun_path(timeline), Beginning, advice)


def note_completion(store: Store, claim: Claim, checkpoint_id: int) -> None:
    """Note that a checkpoint of this run has completed; call it after the driver has checked its claim."""
    store.put_if_absent(completed_path(timeline_folder(claim.job_name, claim.timeline)), b"%d\n" % checkpoint_id)


class Stop(msgspec.Struct, frozen=True):
    """The savepoint that a run was stopped with."""

    version: int
    savepoint: str  # its URL


def note_stop(store: Store, claim: Claim, checkpoint_id: int, savepoint: str) -> None:
    """Note the savepoint that the job is stopped with, before output of the savepoint is committed.

    >>> from rekindle.checkpoint.ownership import claim_first
    >>> from rekindle.checkpoint.store.memory import MemoryStore
    >>> store = MemoryStore()
    >>> claim = claim_first(store, "orders", "0a1b", "host:17", 0)
    >>> note_stop(store, claim, 7, "file:///savepoints/savepoint-0a1b-2c")
    >>> stopped_with(store, checkpoint_folder("orders", claim.timeline, 7))
    'file:///savepoints/savepoint-0a1b-2c'
    """
    path = stop_note_path(claim, checkpoint_id)
    if not put_once(store, path, encode(Stop(FORMAT_VERSION, savepoint))):
        raise CheckpointError(f"There is already another note of a stop at {path} in {store.url}.")


def stop_note_path(claim: Claim, checkpoint_id: int) -> str:
    """The path of the note of a stop in the store."""
    return stopped_path(checkpoint_folder(claim.job_name, claim.timeline, checkpoint_id))


def stopped_with(store: Store, folder: str) -> str:
    """The URL of the savepoint that a job was stopped with, from the note in a checkpoint's folder."""
    advice = f"set {config.RECOVERY_PATH.key} to the savepoint that the job was stopped with"
    return read_note(store, stopped_path(folder), Stop, advice).savepoint
