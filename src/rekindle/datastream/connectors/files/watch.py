"""Continuous monitoring: finds out which files are new. Pure: positions are plain data, the caller lists the files.

A hash of the path divides the files into a fixed number of shards. Each shard belongs to one subtask at a time; a
rescale may move it to another. A shard remembers the newest time of change that it has seen, and the names of the files
that changed shortly before it. Older files count as read. So a shard's state stays small, and each file is read once,
provided that a file changes neither content nor permissions nor name after it has appeared.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from rekindle.datastream.connectors.base import SourceSplit
from rekindle.datastream.connectors.files.listing import FoundFile
from rekindle.errors import IncompatibleStateError

#: Large enough to divide the shards evenly among subtasks, small enough to keep checkpoints small.
MIN_SHARDS = 64
_KIND = "shard"


def shard_of(path: str, shards: int) -> int:
    """Return the shard of a path. It is the same in every process and on every machine.

    >>> shard_of("/data/orders.txt", 64)
    11
    """
    return zlib.crc32(path.encode(errors="surrogateescape")) % shards


@dataclass
class Shard:
    """One shard of all paths, and the files of it that were seen.

    >>> shard = Shard(0, 1)
    >>> [file.path for file in shard.take_new([FoundFile("/b", 1, 20), FoundFile("/a", 1, 10)], 5)]
    ['/a', '/b']
    >>> shard.take_new([FoundFile("/a", 1, 10), FoundFile("/b", 1, 20)], 5), shard.seen
    ([], {'/b': 20})
    """

    number: int
    shards: int
    newest_ns: int | None = None
    seen: dict[str, int] = field(default_factory=dict)

    def take_new(self, files: Iterable[FoundFile], remember_ns: int) -> list[FoundFile]:
        """Return the files of this shard that were not seen before, oldest first, and remember them as seen.

        Names of files that changed more than `remember_ns` before the newest change are forgotten.
        """
        oldest_ns = None if self.newest_ns is None else self.newest_ns - remember_ns
        fresh = []
        for file in files:
            if file.path in self.seen:
                self.seen[file.path] = file.changed_ns  # remember a touched file longer: it is not new
            elif oldest_ns is None or file.changed_ns > oldest_ns:
                fresh.append(file)
        fresh.sort(key=lambda file: (file.changed_ns, file.path))
        if fresh:
            self.seen.update((file.path, file.changed_ns) for file in fresh)
            self.newest_ns = max(fresh[-1].changed_ns, self.newest_ns or 0)
            self.seen = {path: at for path, at in self.seen.items() if at > self.newest_ns - remember_ns}
        return fresh

    def to_source_split(self) -> SourceSplit:
        """Return the shard as a split whose position is plain data."""
        position = (_KIND, self.number, self.shards, self.newest_ns, dict(self.seen))
        return SourceSplit(f"shard {self.number} of {self.shards}", position)

    @staticmethod
    def is_shard(split: SourceSplit) -> bool:
        """Return whether a restored split is a shard."""
        return isinstance(split.position, tuple | list) and len(split.position) == 5 and split.position[0] == _KIND

    @staticmethod
    def restored(split: SourceSplit) -> Shard:
        """Return the shard of a restored split."""
        if not Shard.is_shard(split):
            raise IncompatibleStateError(
                f"The position of split '{split.split_id}' was not written by a FileSource that monitors continuously."
            )
        _, number, shards, newest_ns, seen = split.position
        return Shard(number, shards, newest_ns, dict(seen))


def first_shards(parallelism: int) -> list[Shard]:
    """Return the shards for a job's first start."""
    count = max(MIN_SHARDS, parallelism)
    return [Shard(number, count) for number in range(count)]


def by_shard(files: Iterable[FoundFile], shards: Iterable[Shard]) -> list[tuple[Shard, list[FoundFile]]]:
    """Return these shards with their files. Files of other shards are left out."""
    listed = list(files)
    found = []
    by_number: dict[int, dict[int, list[FoundFile]]] = {}  # number of shards -> shard -> files
    for shard in shards:
        if shard.shards not in by_number:
            numbered = by_number[shard.shards] = {}
            for file in listed:
                numbered.setdefault(shard_of(file.path, shard.shards), []).append(file)
        found.append((shard, by_number[shard.shards].get(shard.number, [])))
    return found
