"""Splits: ranges of files that are read independently, with their positions in checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from rekindle.datastream.connectors.base import SourceSplit
from rekindle.datastream.connectors.files.listing import FoundFile
from rekindle.errors import IncompatibleStateError

#: The first field of a position, by which a later version of Rekindle recognises the format.
_KIND = "file"


@dataclass(frozen=True)
class FileSplit:
    """The bytes from `begin` to `end` - 1 of a file. A record belongs to the split in which it begins.

    >>> split = FileSplit("/data/a.txt", 7, 100, 0, 50)
    >>> FileSplit.restored(split.at(20).to_source_split()) == split.at(20)
    True
    """

    path: str
    #: The file's time of change when it was found, which distinguishes files of the same name.
    changed_ns: int
    size: int
    begin: int
    end: int
    #: The reading position in the format's own unit (bytes of text, rows). None before the first record.
    offset: int | None = None

    def at(self, offset: int) -> FileSplit:
        """Return the same split with another reading position."""
        return replace(self, offset=offset)

    def to_source_split(self) -> SourceSplit:
        """Return a split whose position is plain data."""
        position = (_KIND, self.path, self.changed_ns, self.size, self.begin, self.end, self.offset)
        return SourceSplit(f"{self.path}@{self.changed_ns}:{self.begin}", position)

    @staticmethod
    def is_file_split(split: SourceSplit) -> bool:
        """Return whether a restored split is a split of a file."""
        return isinstance(split.position, tuple | list) and len(split.position) == 7 and split.position[0] == _KIND

    @staticmethod
    def restored(split: SourceSplit) -> FileSplit:
        """Return the split of a file from a restored split."""
        if not FileSplit.is_file_split(split):
            raise IncompatibleStateError(
                f"The position of split '{split.split_id}' was not written by a FileSource: give the source the uid() "
                "that it had, or another one to begin anew."
            )
        return FileSplit(*split.position[1:])


def split_file(file: FoundFile, split_bytes: int | None) -> list[FileSplit]:
    """Split a file into ranges of `split_bytes`, or not at all if None. A short rest belongs to the last range.

    >>> [(split.begin, split.end) for split in split_file(FoundFile("a", 25, 0), 10)]
    [(0, 10), (10, 25)]
    """
    count = 1 if split_bytes is None else max(1, round(file.size / split_bytes))
    bounds = [index * (split_bytes or 0) for index in range(count)] + [file.size]
    return [FileSplit(file.path, file.changed_ns, file.size, begin, end) for begin, end in pairwise(bounds)]
