"""Local recovery: a slot keeps copies of the state files that its last completed checkpoint needs, on its host.

A slot that starts again there reads them instead of the store. All slots of a job on a host share a folder: the file
names tell which subtask wrote them. `copies_keeper` removes the folder with the job.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from rekindle.checkpoint.paths import StateFileName
from rekindle.checkpoint.store.copied_store import CopiedStore, copy_name
from rekindle.checkpoint.store.port import Store

#: An operator's escaped uid and a subtask.
Owner = tuple[str, int]


class LocalCopies:
    """The copies of a slot's subtasks. Every method may be called on any thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._needed: dict[int, dict[Owner, frozenset[str]]] = {}  # checkpoint -> the copies of each subtask
        self._lock = threading.Lock()

    def of(self, store: Store) -> CopiedStore:
        """The store, with copies."""
        return CopiedStore(store, self.folder)

    def written(self, checkpoint_id: int, uid: str, subtask: int, files: Iterable[str]) -> None:
        """Note the files that a subtask's state in a checkpoint consists of, older ones included."""
        name = StateFileName.of(checkpoint_id, 0, uid, subtask)
        copies = frozenset(copy for file in files if (copy := copy_name(file)) is not None)
        with self._lock:
            self._needed.setdefault(checkpoint_id, {})[name.operator, subtask] = copies

    def completed(self, checkpoint_id: int) -> None:
        """Remove the copies of this slot's subtasks that neither this checkpoint nor a later one needs."""
        with self._lock:
            if checkpoint_id not in self._needed:
                return  # the restored checkpoint, notified again, or a savepoint with which the job ends
            self._needed = {each: needed for each, needed in self._needed.items() if each >= checkpoint_id}
            owners = self._needed[checkpoint_id].keys()
            kept = {copy for needed in self._needed.values() for copies in needed.values() for copy in copies}

        def is_superfluous(name: StateFileName) -> bool:
            own = (name.operator, name.subtask) in owners and name.checkpoint_id <= checkpoint_id
            return own and str(name) not in kept

        self._remove(is_superfluous)

    def aborted(self, checkpoint_id: int) -> None:
        """Remove the copies of an aborted checkpoint."""
        with self._lock:
            self._needed.pop(checkpoint_id, None)
        self._remove(lambda name: name.checkpoint_id == checkpoint_id)

    def _remove(self, is_superfluous: Callable[[StateFileName], bool]) -> None:
        with suppress(OSError):  # the folder goes with the job
            for file in self.folder.iterdir():
                name = StateFileName.parse(file.name)
                if name is not None and is_superfluous(name):
                    file.unlink(missing_ok=True)
