"""Which savepoint a job went into when it was stopped: `latest` goes on from there.

What the savepoint contains is committed, and the job's own checkpoints are older. The note lies in the job's timeline,
where its next checkpoint would be; the savepoint itself is the user's, and may be anywhere.
"""

from __future__ import annotations

import msgspec

from rekindle import config
from rekindle.checkpoint.notes import FORMAT_VERSION, encode, read_note
from rekindle.checkpoint.ownership import Claim
from rekindle.checkpoint.paths import checkpoint_folder, stopped_path
from rekindle.checkpoint.store.port import Store, put_once
from rekindle.errors import CheckpointError


class Stop(msgspec.Struct, frozen=True):
    """The note."""

    version: int
    savepoint: str  # its URL


def note_stop(store: Store, claim: Claim, checkpoint_id: int, savepoint: str) -> None:
    """Say where the job goes, before anything of the savepoint is committed.

    >>> from rekindle.checkpoint.ownership import claim_first
    >>> from rekindle.checkpoint.store.memory import MemoryStore
    >>> store = MemoryStore()
    >>> claim = claim_first(store, "orders", "0a1b", "host:17", 0)
    >>> note_stop(store, claim, 7, "file:///savepoints/savepoint-0a1b-2c")
    >>> stopped_with(store, checkpoint_folder("orders", claim.timeline, 7))
    'file:///savepoints/savepoint-0a1b-2c'
    """
    path = note_of(claim, checkpoint_id)
    if not put_once(store, path, encode(Stop(FORMAT_VERSION, savepoint))):
        raise CheckpointError(f"There is already another note of a stop at {path} in {store.url}.")


def note_of(claim: Claim, checkpoint_id: int) -> str:
    """The path of the note in the store."""
    return stopped_path(checkpoint_folder(claim.job_name, claim.timeline, checkpoint_id))


def stopped_with(store: Store, folder: str) -> str:
    """The savepoint that a job was stopped with in place of the checkpoint of this folder: its URL."""
    advice = f"set {config.RECOVERY_PATH.key} to the savepoint that the job was stopped with"
    return read_note(store, stopped_path(folder), Stop, advice).savepoint
