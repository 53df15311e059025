"""The file source: bounded over the files that are there, or watching directories for new ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from rekindle.clock import Clock, SystemClock
from rekindle.common.time import Duration, as_millis
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.connectors.base import (
    Batch,
    Boundedness,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from rekindle.datastream.connectors.files.file_paths import local_path
from rekindle.datastream.connectors.files.formats import BulkFormat, FileFormat, RecordReader, StreamFormat
from rekindle.datastream.connectors.files.listing import FoundFile, list_files
from rekindle.datastream.connectors.files.splits import FileSplit, split_file
from rekindle.datastream.connectors.files.watch import Shard, by_shard, first_shards
from rekindle.errors import GraphError

T = TypeVar("T")

#: Large enough that opening does not count, small enough that a few large files keep all subtasks busy.
DEFAULT_SPLIT_BYTES = 64 << 20
#: How long a file that is new to a watched directory may bear an older change than others that were seen.
DEFAULT_REMEMBER = Duration.of_hours(1)
#: A listing takes at most this part of a reader's time, however large the directory.
_LISTING_SHARE = 0.1


class FileEnumeratorProvider:
    """How files are found, and divided into splits: below the paths recursively, without hidden ones.

    >>> FileEnumeratorProvider.default_splittable_file_enumerator(split_bytes=1 << 20).split_bytes
    1048576
    """

    def __init__(self, split_bytes: int | None) -> None:
        if split_bytes is not None and (not isinstance(split_bytes, int) or split_bytes < 1):
            raise GraphError(f"A split of a file has 1 byte or more, not {split_bytes!r}.")
        self.split_bytes = split_bytes

    @staticmethod
    def default_splittable_file_enumerator(split_bytes: int = DEFAULT_SPLIT_BYTES) -> FileEnumeratorProvider:
        """Large files in several splits, as far as their format allows."""
        return FileEnumeratorProvider(split_bytes)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """One split per file."""
        return FileEnumeratorProvider(None)


class FileSplitAssignerProvider:
    """Who reads which split. Splits are dealt to the subtasks in turn, or by path when directories are watched."""

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Accepted for the sake of Flink programs: local directories have no better place."""
        return FileSplitAssignerProvider()


class FileSourceBuilder:
    """Settings of a FileSource; begun with `FileSource.for_record_stream_format` or `for_bulk_file_format`."""

    def __init__(self, where: str, file_format: FileFormat, paths: tuple[Any, ...]) -> None:
        if not paths:
            raise GraphError(f"{where} takes at least one path of a file or directory.")
        self._format = file_format
        self._paths = [local_path(where, path) for path in paths]
        self._interval_ms: int | None = None
        self._remember_ms = as_millis(DEFAULT_REMEMBER)
        self._enumerator = FileEnumeratorProvider.default_splittable_file_enumerator()

    def monitor_continuously(
        self, discovery_interval: Duration, remember: Duration = DEFAULT_REMEMBER
    ) -> FileSourceBuilder:
        """Never end, and look for new files in this interval.

        `remember`: how long the names of read files are kept, see `docs/guide/files.md`.
        """
        self._interval_ms, self._remember_ms = as_millis(discovery_interval), as_millis(remember)
        if self._interval_ms < 1 or self._remember_ms < 1:
            raise GraphError("monitor_continuously() takes an interval, and a time to remember, of 1 ms or more.")
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read the files that are there when the source is built, and end; the default."""
        self._interval_ms = None
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """How files are divided."""
        if not isinstance(file_enumerator, FileEnumeratorProvider):
            raise GraphError(f"set_file_enumerator() takes a FileEnumeratorProvider, not {file_enumerator!r}.")
        self._enumerator = file_enumerator
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """Accepted; there is one way."""
        if not isinstance(split_assigner, FileSplitAssignerProvider):
            raise GraphError(f"set_split_assigner() takes a FileSplitAssignerProvider, not {split_assigner!r}.")
        return self

    def build(self) -> FileSource[Any]:
        """The source. A path that does not exist is refused here."""
        files = list_files(self._paths)
        watching = None if self._interval_ms is None else _Watching(self._paths, self._interval_ms, self._remember_ms)
        produced = self._format.get_produced_type(files[0].path if files else None)
        found = files if watching is None else []
        return FileSource(self._format, found, watching, self._enumerator.split_bytes, produced)


class _Watching:
    """Where to look for new files, and how often."""

    def __init__(self, paths: list[str], interval_ms: int, remember_ms: int) -> None:
        self.paths = paths
        self.interval_s = interval_ms / 1000
        self.remember_ns = remember_ms * 1_000_000


class FileSource(Source[T], Generic[T]):
    """Reads files, each record once, also over failures; bounded, or watching directories for new files.

    A bounded source reads the files that are there when it is built. Hidden files (`.x`, `_x`) are skipped.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     written = pathlib.Path(directory, "words.txt").write_text("to\\nbe\\n")
    ...     source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), directory).build()
    ...     source.create_reader(SourceReaderContext(0, 1), source.create_splits(1)).poll(10)
    ['to', 'be']
    """

    def __init__(
        self,
        file_format: FileFormat,
        files: list[FoundFile],
        watching: _Watching | None,
        split_bytes: int | None,
        produced_type: TypeInformation | None,
    ) -> None:
        """Use `for_record_stream_format` or `for_bulk_file_format`."""
        self._format = file_format
        self._files = files
        self._watching = watching
        self._split_bytes = split_bytes
        self._produced_type = produced_type

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Files and directories, read record by record."""
        where = "FileSource.for_record_stream_format()"
        if not isinstance(stream_format, StreamFormat):
            raise GraphError(f"{where} takes a StreamFormat, not {stream_format!r}.")
        return FileSourceBuilder(where, stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        """Files and directories, read in batches of columns."""
        where = "FileSource.for_bulk_file_format()"
        if not isinstance(bulk_format, BulkFormat):
            raise GraphError(f"{where} takes a BulkFormat, not {bulk_format!r}.")
        return FileSourceBuilder(where, bulk_format, paths)

    def boundedness(self) -> Boundedness:
        """Bounded, unless directories are watched."""
        return Boundedness.BOUNDED if self._watching is None else Boundedness.CONTINUOUS_UNBOUNDED

    def get_produced_type(self) -> TypeInformation | None:
        """The format's type, as far as it is known."""
        return self._produced_type

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        """Parts of the files, by path; or shards of all paths that files may have."""
        if self._watching is not None:
            return [shard.to_source_split() for shard in first_shards(parallelism)]
        return [
            split.to_source_split()
            for file in self._files
            for split in split_file(file, self._split_bytes if self._format.is_splittable(file.path) else None)
        ]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[T]:
        """Reads its splits one after the other."""
        return FileReader(self._format, splits, self._watching)


class FileReader(SourceReader[T], Generic[T]):
    """One subtask's files."""

    def __init__(
        self,
        file_format: FileFormat,
        splits: Iterable[SourceSplit],
        watching: _Watching | None,
        clock: Clock | None = None,
    ) -> None:
        self._format = file_format
        self._watching = watching
        self._clock = clock or SystemClock()
        self._shards: list[Shard] = []
        self._waiting: deque[FileSplit] = deque()  # the first of them is the one that is open
        for split in splits:
            if watching is not None and Shard.is_one(split):
                self._shards.append(Shard.restored(split))
            else:
                self._waiting.append(FileSplit.restored(split))
        self._open: RecordReader | None = None
        self._look_again_at = self._clock.monotonic()

    def is_available(self) -> bool:
        """Whether there is something to read; new files are looked for here, so that no epoch runs for none."""
        self._discover()
        return bool(self._waiting) or self._watching is None

    def poll(self, max_records: int) -> list[T] | Batch[T] | None:
        """Records of the first split that has some."""
        self._discover()
        while self._waiting:
            if self._open is None:
                self._open = self._format.open(self._waiting[0])
            records = self._open.read(max_records)
            if records:
                return records
            self._open.close()
            self._open = None
            self._waiting.popleft()
        return None if self._watching is None else []

    def snapshot_state(self) -> list[SourceSplit]:
        """What is left, the open split after the last record that was handed out, and the shards."""
        splits = list(self._waiting)
        if self._open is not None:
            splits[0] = splits[0].at(self._open.offset)
        return [shard.to_source_split() for shard in self._shards] + [split.to_source_split() for split in splits]

    def close(self) -> None:
        """Close the open file."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _discover(self) -> None:
        began = self._clock.monotonic()
        if self._watching is None or not self._shards or began < self._look_again_at:
            return
        for shard, files in by_shard(list_files(self._watching.paths), self._shards):
            for file in shard.take_new(files, self._watching.remember_ns):
                self._waiting.extend(split_file(file, None))
        took = self._clock.monotonic() - began
        self._look_again_at = began + max(self._watching.interval_s, took / _LISTING_SHARE)
