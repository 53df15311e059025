"""What a run of a job began from, and whether it has completed anything: two notes in its timeline (I21).

`_begun` is there before anything outside hears of the run: whatever an older driver publishes after that, `latest`
follows the note. `_completed` outlives the checkpoints that it speaks of.
"""

from __future__ import annotations

import msgspec

from rekindle import config
from rekindle.checkpoint.notes import FORMAT_VERSION, encode, read_note
from rekindle.checkpoint.ownership import Claim
from rekindle.checkpoint.paths import begun_path, completed_path, timeline_folder
from rekindle.checkpoint.store.port import Store


class Beginning(msgspec.Struct, frozen=True):
    """What a run begins from."""

    #: A checkpoint's folder below the job's, or the URL of what lies elsewhere; None: the run begins anew.
    origin: str | None = None
    #: Of the origin: what is older there, the run stands on too.
    timeline: str = ""
    checkpoint_id: int = 0
    #: It begins anew, and nobody has looked for a latest checkpoint.
    on_purpose: bool = False
    version: int = FORMAT_VERSION


def note_beginning(store: Store, claim: Claim, beginning: Beginning) -> None:
    """Say what the run of a claim begins from, before it acts; a later word replaces an earlier one.

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
    """The note in a timeline's folder."""
    advice = f"set {config.RECOVERY_PATH.key} to the checkpoint or savepoint to go on from"
    return read_note(store, begun_path(timeline), Beginning, advice)


def note_completion(store: Store, claim: Claim, checkpoint_id: int) -> None:
    """Say that a checkpoint of this run has completed, once its driver has seen that the job is still its own."""
    store.put_if_absent(completed_path(timeline_folder(claim.job_name, claim.timeline)), b"%d\n" % checkpoint_id)
