"""A slot's share of the checkpoint that it restores: from the store, or from local copies."""

from __future__ import annotations

import logging

import msgspec

from rekindle.checkpoint.rescale import SubtaskShare
from rekindle.checkpoint.store.copied_store import CopiedStore
from rekindle.checkpoint.store.memory import MemoryStore
from rekindle.checkpoint.store.options import open_configured
from rekindle.checkpoint.store.port import Store
from rekindle.protocol import Deploy
from rekindle.runtime.local_copies import LocalCopies
from rekindle.runtime.task_snapshots import TaskShare

_LOG = logging.getLogger("rekindle.slot")
_decode = msgspec.msgpack.Decoder(SubtaskShare).decode


class RestoredSlot:
    """The shares of a slot's subtasks. Tasks ask for theirs on their own threads."""

    def __init__(self, deploy: Deploy, copies: LocalCopies | None) -> None:
        """`copies`: those of this host, if the job restores from them."""
        self._deploy = deploy
        self._copies = copies
        self._shares = [_decode(data) for data in deploy.restores]
        self._copied: list[CopiedStore] = []

    def share_of(self, subtask: int) -> TaskShare | None:
        """The share of the operators' subtasks with this index; None: the job begins anew."""
        if self._deploy.restored_id is None:
            return None
        own = {share.uid: share for share in self._shares if share.subtask == subtask}
        return TaskShare(self._store(), self._deploy.restore_root, own)

    def _store(self) -> Store:
        url = self._deploy.restore_url
        store = open_configured(url, self._deploy.store_options) if url is not None else MemoryStore()
        if self._copies is None:
            return store
        copied = self._copies.of(store)  # one for each task: they read side by side
        self._copied.append(copied)
        return copied

    def report(self) -> None:
        """Log where state files came from."""
        if self._copied:
            copies = len(set().union(*(each.from_copies for each in self._copied)))
            others = len(set().union(*(each.from_store for each in self._copied)))
            _LOG.info("State files restored from local copies: %d, from the store: %d.", copies, others)
