"""A directory of checkpoints that a test makes without a job."""

from __future__ import annotations

from pathlib import Path

from rekindle.checkpoint.paths import checkpoint_folder
from rekindle.checkpoint.store.open_store import open_store
from rekindle.checkpoint.timeline_notes import Beginning, note_beginning
from tests.unit.checkpoint.samples import published, take_over

GROUPS = ((0, b"zero" * 5000), (1, b"one" * 5000))
CHANGED = ((1, b"ONE" * 5000),)


class Directory:
    """Two runs of a job: the first with a checkpoint and one on top of it, the second with one of its own."""

    def __init__(self, path: Path):
        self.path = path
        self.store = open_store(str(path))
        self.first = take_over(self.store)
        note_beginning(self.store, self.first, Beginning())
        full = published(self.store, self.first, 1, GROUPS)
        published(self.store, self.first, 2, CHANGED, base=full)
        self.second = take_over(self.store)
        origin = checkpoint_folder("orders", self.first.timeline, 2)
        note_beginning(self.store, self.second, Beginning(origin.removeprefix("orders/"), self.first.timeline, 2))
        published(self.store, self.second, 3, GROUPS)

    def at(self, checkpoint_id: int) -> str:
        timeline = self.second.timeline if checkpoint_id == 3 else self.first.timeline
        return str(self.path / checkpoint_folder("orders", timeline, checkpoint_id))

    def shared(self, checkpoint_id: int) -> Path:
        (file,) = Path(self.at(checkpoint_id)).parent.glob(f"shared/{checkpoint_id}-*.state")
        return file
