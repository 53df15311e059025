"""Compaction of the file sink: small files of several checkpoints become one file before anyone sees them.

A closed file waits in the writer's state, staged, until its bucket has enough bytes or checkpoints. Then the files of
the bucket are one committable. The committer writes them into one staged file and renames it (I18); only then it
removes them. So a file is in exactly one of three places: in the writer's state, in a committable, in a visible file.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, BinaryIO

from rekindle.errors import GraphError


class FileCompactStrategy:
    """Decides when the files of a bucket are compacted: by the number of checkpoints, by their size, or both.

    >>> strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(5).set_size_threshold(1 << 20).build()
    >>> strategy.get_size_threshold()
    1048576
    """

    def __init__(self, num_checkpoints: int, size_threshold: int, num_threads: int) -> None:
        """Do not call directly: use `builder`."""
        self._num_checkpoints = num_checkpoints
        self._size_threshold = size_threshold
        self._num_threads = num_threads

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        """Return a builder of a strategy."""
        return FileCompactStrategy.Builder()

    def get_num_checkpoints_before_compaction(self) -> int:
        """Return after how many checkpoints files are compacted, or -1."""
        return self._num_checkpoints

    def get_size_threshold(self) -> int:
        """Return from how many bytes on files are compacted, or -1."""
        return self._size_threshold

    def get_num_compact_threads(self) -> int:
        """Return how many buckets a subtask compacts at the same time."""
        return self._num_threads

    def is_due(self, files: Sequence[PendingFile]) -> bool:
        """Return whether the files of a bucket are compacted now."""
        if 0 < self._num_checkpoints <= max(file.checkpoints for file in files):
            return True
        return 0 <= self._size_threshold <= sum(file.size for file in files)

    class Builder:
        """Builds a `FileCompactStrategy`."""

        def __init__(self) -> None:
            self._num_checkpoints = -1
            self._size_threshold = -1
            self._num_threads = 1

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            """Compact the files of a bucket after this many checkpoints."""
            self._num_checkpoints = _at_least_1("enable_compaction_on_checkpoint", num_checkpoints_before_compaction)
            return self

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """Compact the files of a bucket as soon as they have this many bytes together."""
            self._size_threshold = _at_least_1("set_size_threshold", size_threshold)
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """Set how many buckets a subtask compacts at the same time; 1 by default."""
            self._num_threads = _at_least_1("set_num_compact_threads", num_compact_threads)
            return self

        def build(self) -> FileCompactStrategy:
            """Return the strategy."""
            if self._num_checkpoints < 0 and self._size_threshold < 0:
                raise GraphError(
                    "A FileCompactStrategy needs enable_compaction_on_checkpoint(n), set_size_threshold(n), or both."
                )
            return FileCompactStrategy(self._num_checkpoints, self._size_threshold, self._num_threads)


def _at_least_1(method: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise GraphError(f"{method}() takes a number of 1 or more, not {value!r}.")
    return value


class FileCompactor(ABC):
    """Writes several files into one.

    >>> import io
    >>> out = io.BytesIO()
    >>> FileCompactor.concat_file_compactor(b"--").compact([io.BytesIO(b"a"), io.BytesIO(b"b")], out)
    >>> out.getvalue()
    b'a--b'
    """

    @abstractmethod
    def compact(self, inputs: Sequence[BinaryIO], output: BinaryIO, header: bytes = b"") -> None:
        """Write the content of the inputs. Each begins with `header`, which belongs into the output once."""

    @property
    def takes_several(self) -> bool:
        """Whether several files can become one."""
        return True

    @property
    def joins_bytes(self) -> bool:
        """Whether the output is the inputs one after the other, which no bulk format can read."""
        return False

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """Return a compactor that puts the files one after the other, with these bytes between them."""
        if file_delimiter is not None and not isinstance(file_delimiter, bytes):
            raise GraphError(f"concat_file_compactor() takes bytes, not {file_delimiter!r}.")
        return _Concatenation(file_delimiter or b"")

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Return a compactor that leaves each file as it is."""
        return _Identity()


class _Concatenation(FileCompactor):
    def __init__(self, delimiter: bytes) -> None:
        self._delimiter = delimiter

    @property
    def joins_bytes(self) -> bool:
        return True

    def compact(self, inputs: Sequence[BinaryIO], output: BinaryIO, header: bytes = b"") -> None:
        for index, file in enumerate(inputs):
            if index:
                output.write(self._delimiter)
                file.seek(len(header))
            shutil.copyfileobj(file, output, 1 << 20)


class _Identity(FileCompactor):
    @property
    def takes_several(self) -> bool:
        return False

    def compact(self, inputs: Sequence[BinaryIO], output: BinaryIO, header: bytes = b"") -> None:
        (only,) = inputs
        shutil.copyfileobj(only, output, 1 << 20)


@dataclass(frozen=True)
class PendingFile:
    """A closed, staged file that waits for its compaction. `checkpoints` counts those that it has seen."""

    folder: str
    staged: str
    name: str
    size: int
    checkpoints: int = 0

    def after_checkpoint(self) -> PendingFile:
        """Return the same file, one checkpoint later."""
        return replace(self, checkpoints=self.checkpoints + 1)

    def committable(self) -> dict[str, Any]:
        """Return the committable of a file that is not compacted."""
        return {"folder": self.folder, "staged": self.staged, "name": self.name, "size": self.size}

    def to_state(self) -> dict[str, Any]:
        """Return the file as plain data."""
        return asdict(self)


def compacted(files: Sequence[PendingFile]) -> dict[str, Any]:
    """Return the committable of files of one bucket that become one.

    >>> compacted([PendingFile("/out", ".a.inprogress.t.1.0", "a", 3), PendingFile("/out", ".b.x", "b", 4)])["name"]
    'compacted-a'
    """
    return {
        "folder": files[0].folder,
        "name": f"compacted-{files[0].name}",
        "parts": [{"staged": file.staged, "name": file.name, "size": file.size} for file in files],
    }


def take_due(
    pending: Sequence[PendingFile], strategy: FileCompactStrategy | None, several: bool, all_now: bool
) -> tuple[list[dict[str, Any]], list[PendingFile]]:
    """Return the committables of the buckets that are due, and the files that wait on. Pure."""
    if strategy is None or not several:
        return [file.committable() for file in pending], []
    buckets: dict[str, list[PendingFile]] = {}
    for file in pending:
        buckets.setdefault(file.folder, []).append(file)
    due: list[dict[str, Any]] = []
    waiting: list[PendingFile] = []
    for files in buckets.values():
        if all_now or strategy.is_due(files):
            due.append(compacted(files))
        else:
            waiting.extend(files)
    return due, waiting
