"""Which savepoint a job went into when it was stopped: `latest` goes on from there.

What the savepoint contains is committed, and the job's own checkpoints are older. The note lies in the job's timeline,
where its next checkpoint would be; the savepoint itself is the user's, and may be anywhere.
"""

from __future__ import annotations

from typing import Final

import msgspec

from rekindle.checkpoint.ownership import Claim
from rekindle.checkpoint.paths import METADATA, STOPPED, checkpoint_folder, job_folder, stopped_path
from rekindle.checkpoint.resolve import folders_with
from rekindle.checkpoint.store import Store, put_once
from rekindle.errors import CheckpointError, CorruptCheckpointError

FORMAT_VERSION: Final = 1


class Stop(msgspec.Struct, frozen=True):
    """The note."""

    version: int
    savepoint: str  # its URL


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Stop).decode


def note_stop(store: Store, claim: Claim, checkpoint_id: int, savepoint: str) -> None:
    """Say where the job goes, before anything of the savepoint is committed.

    >>> from rekindle.checkpoint.ownership import claim_first
    >>> from rekindle.checkpoint.stores.memory import MemoryStore
    >>> store = MemoryStore()
    >>> note_stop(store, claim_first(store, "orders", "0a1b", "host:17", 0), 7, "file:///savepoints/savepoint-0a1b-2c")
    >>> last_stop(store, "orders")
    'file:///savepoints/savepoint-0a1b-2c'
    """
    path = note_of(claim, checkpoint_id)
    if not put_once(store, path, _encode(Stop(FORMAT_VERSION, savepoint))):
        raise CheckpointError(f"There is already another note of a stop at {path} in {store.url}.")


def note_of(claim: Claim, checkpoint_id: int) -> str:
    """The path of the note in the store."""
    return stopped_path(checkpoint_folder(claim.job_name, claim.timeline, checkpoint_id))


def last_stop(store: Store, job_name: str) -> str | None:
    """The savepoint that the job was stopped with, if it has made no checkpoint since."""
    entries = store.list(job_folder(job_name))
    checkpoints, stops = folders_with(METADATA, entries), folders_with(STOPPED, entries)
    if not stops or (checkpoints and checkpoints[-1].order > stops[-1].order):
        return None
    path = stopped_path(str(stops[-1]))
    try:
        note = _decode(store.read(path))
    except msgspec.DecodeError as error:
        raise CorruptCheckpointError(
            f"The note {path} in {store.url} of the savepoint that job '{job_name}' was stopped with is damaged: set "
            "execution.state-recovery.path to that savepoint."
        ) from error
    if note.version > FORMAT_VERSION:
        raise CorruptCheckpointError(
            f"The note {path} in {store.url} has format {note.version}, this version of Rekindle knows "
            f"{FORMAT_VERSION}: use the version that stopped job '{job_name}', or a newer one."
        )
    return note.savepoint
