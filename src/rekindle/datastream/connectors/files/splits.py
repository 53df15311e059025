"""Parts of files that are read on their own, and their positions in checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from rekindle.datastream.connectors.base import SourceSplit
from rekindle.datastream.connectors.files.listing import FoundFile
from rekindle.errors import IncompatibleStateError

#: The first field of a position: a later version of Rekindle tells by it what it reads.
_KIND = "file"


@dataclass(frozen=True)
class FileSplit:
    """The bytes from `begin` to before `end` of a file; what begins in there is read by this split alone.

    >>> split = FileSplit("/data/a.txt", 7, 100, 0, 50)
    >>> FileSplit.restored(split.at(20).to_source_split()) == split.at(20)
    True
    """

    path: str
    #: When the file was found to have changed last: tells it from another one of the same name.
    changed_ns: int
    size: int
    begin: int
    end: int
    #: How far it was read, in the format's own unit (bytes of text, rows); None before the first record.
    offset: int | None = None

    def at(self, offset: int) -> FileSplit:
        """The same split, read so far."""
        return replace(self, offset=offset)

    def to_source_split(self) -> SourceSplit:
        """As plain data."""
        position = (_KIND, self.path, self.changed_ns, self.size, self.begin, self.end, self.offset)
        return SourceSplit(f"{self.path}@{self.changed_ns}:{self.begin}", position)

    @staticmethod
    def is_one(split: SourceSplit) -> bool:
        """Whether a restored split is part of a file."""
        return isinstance(split.position, tuple | list) and len(split.position) == 7 and split.position[0] == _KIND

    @staticmethod
    def restored(split: SourceSplit) -> FileSplit:
        """Back from plain data."""
        if not FileSplit.is_one(split):
            raise IncompatibleStateError(
                f"The position of split '{split.split_id}' was not written by a FileSource: give the source the uid() "
                "that it had, or another one to begin anew."
            )
        return FileSplit(*split.position[1:])


def split_file(file: FoundFile, split_bytes: int | None) -> list[FileSplit]:
    """The file whole, or in ranges of so many bytes; a short rest goes to the last range.

    >>> [(split.begin, split.end) for split in split_file(FoundFile("a", 25, 0), 10)]
    [(0, 10), (10, 25)]
    """
    count = 1 if split_bytes is None else max(1, round(file.size / split_bytes))
    bounds = [index * (split_bytes or 0) for index in range(count)] + [file.size]
    return [FileSplit(file.path, file.changed_ns, file.size, begin, end) for begin, end in pairwise(bounds)]
