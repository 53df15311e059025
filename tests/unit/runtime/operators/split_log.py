"""A source for tests whose splits are lists of timestamps that a test extends while the job runs."""

from __future__ import annotations

from typing import Any, ClassVar

from rekindle.datastream.connectors.base import Batch, Boundedness, Source, SourceReader, SourceSplit


class Log:
    """The splits of all `LogSource`s of a test, and what their readers were told."""

    splits: ClassVar[dict[str, list[int]]] = {}
    created: ClassVar[list[int]] = []
    told: ClassVar[list[tuple[Any, ...]]] = []

    @classmethod
    def clear(cls) -> None:
        cls.splits, cls.created, cls.told = {}, [], []


class LogSource(Source):
    """Reads each split in order. Split names are numbers; split n is read by subtask n modulo the parallelism."""

    has_watermarks_per_split = True
    returns_fresh_records = True

    def __init__(self, bounded=True, discovers=False, prefix="", pausing=True):
        self.bounded = bounded
        self.prefix = prefix
        self.pausing = pausing
        self.discovery_interval_ms = 10 if discovers else None

    def boundedness(self):
        return Boundedness.BOUNDED if self.bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def create_splits(self, parallelism):
        Log.created.append(parallelism)
        return self.discover_splits()

    def discover_splits(self):
        return [SourceSplit(name, 0) for name in Log.splits if name.startswith(self.prefix)]

    def split_owner(self, split_id, parallelism):
        return int(split_id.removeprefix(self.prefix)) % parallelism

    def create_reader(self, context, splits):
        kind = LogReader if self.pausing else StubbornReader
        return kind(self, context, splits)


class StubbornReader(SourceReader):
    """Reads one record of each split in turn; it cannot pause single splits."""

    def __init__(self, source, context, splits):
        self.source, self.context = source, context
        self.positions = {split.split_id: split.position for split in splits}
        self.paused: set[str] = set()
        Log.told.append(("opened", context.index_of_subtask, context.is_restored(), sorted(self.positions)))

    def _open_splits(self):
        return [
            name for name, done in self.positions.items() if name not in self.paused and done < len(Log.splits[name])
        ]

    def is_available(self):
        return bool(self._open_splits()) or self.source.bounded

    def poll(self, max_records):
        ready = self._open_splits()[:max_records]
        if not ready and self.source.bounded and not self.paused:
            return None
        records = []
        for name in ready:
            records.append((name, Log.splits[name][self.positions[name]]))
            self.positions[name] += 1
        ended = [name for name in ready if self.source.bounded and self.positions[name] == len(Log.splits[name])]
        return Batch(records, [time for _, time in records], [(name, 1) for name in ready], ended)

    def snapshot_state(self, checkpoint_id):
        Log.told.append(("snapshot", checkpoint_id))
        return [SourceSplit(name, position) for name, position in self.positions.items()]

    def add_splits(self, splits):
        Log.told.append(("added", self.context.index_of_subtask, [split.split_id for split in splits]))
        self.positions.update({split.split_id: split.position for split in splits})

    def notify_checkpoint_complete(self, checkpoint_id):
        Log.told.append(("complete", checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id):
        Log.told.append(("aborted", checkpoint_id))


class LogReader(StubbornReader):
    """Pauses splits one by one."""

    def pause_splits(self, paused):
        Log.told.append(("paused", sorted(paused)))
        self.paused = set(paused)
