"""The file source: reads a fixed set of files, or monitors directories for new files."""

from __future__ import annotations

import os
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
from rekindle.datastream.connectors.files.listing import FoundFile, is_pattern, list_files
from rekindle.datastream.connectors.files.splits import FileSplit, split_file
from rekindle.datastream.connectors.files.watch import Shard, by_shard, first_shards
from rekindle.errors import GraphError

T = TypeVar("T")

#: Large enough that the time to open a file does not matter, small enough that few large files occupy all subtasks.
DEFAULT_SPLIT_BYTES = 64 << 20
#: A new file may have a time of change that is up to this much older than that of files seen before.
DEFAULT_REMEMBER = Duration.of_hours(1)
#: Listings take at most this share of a reader's time, however large the directory is.
_LISTING_SHARE = 0.1


class FileEnumeratorProvider:
    """Decides how files are divided into splits. Files are found recursively; hidden files are skipped.

    >>> FileEnumeratorProvider.default_splittable_file_enumerator(split_bytes=1 << 20).split_bytes
    1048576
    """

    def __init__(self, split_bytes: int | None) -> None:
        if split_bytes is not None and (not isinstance(split_bytes, int) or split_bytes < 1):
            raise GraphError(f"A split of a file has 1 byte or more, not {split_bytes!r}.")
        self.split_bytes = split_bytes

    @staticmethod
    def default_splittable_file_enumerator(split_bytes: int = DEFAULT_SPLIT_BYTES) -> FileEnumeratorProvider:
        """Return a provider that divides large files into several splits, if their format allows it."""
        return FileEnumeratorProvider(split_bytes)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Return a provider that makes one split per file."""
        return FileEnumeratorProvider(None)


class FileSplitAssignerProvider:
    """Decides which subtask reads which split: in turn, or by path while directories are monitored."""

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Return the only assigner. The name exists for Flink programs: all subtasks read local directories alike."""
        return FileSplitAssignerProvider()


class FileSourceBuilder:
    """Builds a FileSource. `FileSource.for_record_stream_format` and `for_bulk_file_format` return one."""

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
        """Run without end, and look for new files at this interval.

        `remember` is how long the names of read files are kept, see `docs/guide/files.md`.
        """
        self._interval_ms, self._remember_ms = as_millis(discovery_interval), as_millis(remember)
        if self._interval_ms < 1 or self._remember_ms < 1:
            raise GraphError("monitor_continuously() takes an interval, and a time to remember, of 1 ms or more.")
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read the files that exist when the source is built, then end. This is the default."""
        self._interval_ms = None
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """Set how files are divided into splits."""
        if not isinstance(file_enumerator, FileEnumeratorProvider):
            raise GraphError(f"set_file_enumerator() takes a FileEnumeratorProvider, not {file_enumerator!r}.")
        self._enumerator = file_enumerator
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """Accepted without effect: there is only one assigner."""
        if not isinstance(split_assigner, FileSplitAssignerProvider):
            raise GraphError(f"set_split_assigner() takes a FileSplitAssignerProvider, not {split_assigner!r}.")
        return self

    def build(self) -> FileSource[Any]:
        """Return the source. Refuses a path that does not exist; a monitored one must exist when the job runs."""
        if self._interval_ms is None:
            files = list_files(self._paths)
        else:
            there = (path for path in self._paths if is_pattern(path) or os.path.lexists(path))
            files = list_files(there, may_be_none=True)
        monitoring = None
        if self._interval_ms is not None:
            monitoring = _Monitoring(self._paths, self._interval_ms, self._remember_ms)
        produced = self._format.get_produced_type(files[0].path if files else None)
        found = files if monitoring is None else []
        return FileSource(self._format, found, monitoring, self._enumerator.split_bytes, produced)


class _Monitoring:
    """The directories to monitor for new files, and the interval."""

    def __init__(self, paths: list[str], interval_ms: int, remember_ms: int) -> None:
        self.paths = paths
        self.interval_s = interval_ms / 1000
        self.remember_ns = remember_ms * 1_000_000


class FileSource(Source[T], Generic[T]):
    """Reads files, each record exactly once even after failures. Bounded, or monitoring directories for new files.

    A bounded source reads the files that exist when it is built. Hidden files (`.x`, `_x`) are skipped.

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
        monitoring: _Monitoring | None,
        split_bytes: int | None,
        produced_type: TypeInformation | None,
    ) -> None:
        """Do not call directly: use `for_record_stream_format` or `for_bulk_file_format`."""
        self._format = file_format
        self._files = files
        self._monitoring = monitoring
        self._split_bytes = split_bytes
        self._produced_type = produced_type

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Build a source that reads files and directories record by record. A path may be a pattern: `/data/*.csv`."""
        where = "FileSource.for_record_stream_format()"
        if not isinstance(stream_format, StreamFormat):
            raise GraphError(f"{where} takes a StreamFormat, not {stream_format!r}.")
        return FileSourceBuilder(where, stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        """Build a source that reads files and directories in batches of columns. A path may be a pattern."""
        where = "FileSource.for_bulk_file_format()"
        if not isinstance(bulk_format, BulkFormat):
            raise GraphError(f"{where} takes a BulkFormat, not {bulk_format!r}.")
        return FileSourceBuilder(where, bulk_format, paths)

    def boundedness(self) -> Boundedness:
        """Return BOUNDED, or CONTINUOUS_UNBOUNDED if directories are monitored."""
        return Boundedness.BOUNDED if self._monitoring is None else Boundedness.CONTINUOUS_UNBOUNDED

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the format's records, or None if it is not known."""
        return self._produced_type

    def create_splits(self, parallelism: int) -> list[SourceSplit]:
        """Return the splits of the files, sorted by path, or the shards if directories are monitored."""
        if self._monitoring is not None:
            return [shard.to_source_split() for shard in first_shards(parallelism)]
        return [
            split.to_source_split()
            for file in self._files
            for split in split_file(file, self._split_bytes if self._format.is_splittable(file.path) else None)
        ]

    def create_reader(self, context: SourceReaderContext, splits: list[SourceSplit]) -> SourceReader[T]:
        """Return a reader that reads these splits one after the other."""
        return FileReader(self._format, splits, self._monitoring)


class FileReader(SourceReader[T], Generic[T]):
    """Reads one subtask's files."""

    def __init__(
        self,
        file_format: FileFormat,
        splits: Iterable[SourceSplit],
        monitoring: _Monitoring | None,
        clock: Clock | None = None,
    ) -> None:
        self._format = file_format
        self._monitoring = monitoring
        self._clock = clock or SystemClock()
        self._shards: list[Shard] = []
        self._splits: deque[FileSplit] = deque()  # the first one is the open one
        for split in splits:
            if monitoring is not None and Shard.is_shard(split):
                self._shards.append(Shard.restored(split))
            else:
                self._splits.append(FileSplit.restored(split))
        self._open: RecordReader | None = None
        self._look_again_at = self._clock.monotonic()

    def is_available(self) -> bool:
        """Look for new files, and return whether there are records. Without new files, no epoch runs."""
        self._discover()
        return bool(self._splits) or self._monitoring is None

    def poll(self, max_records: int) -> list[T] | Batch[T] | None:
        """Return records of the first split that has any."""
        self._discover()
        while self._splits:
            if self._open is None:
                self._open = self._format.open(self._splits[0])
            records = self._open.read(max_records)
            if records:
                return records
            self._open.close()
            self._open = None
            self._splits.popleft()
        return None if self._monitoring is None else []

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        """Return the shards and the remaining splits, the open one positioned after the last record returned."""
        splits = list(self._splits)
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
        if self._monitoring is None or not self._shards or began < self._look_again_at:
            return
        for shard, files in by_shard(list_files(self._monitoring.paths, may_be_none=True), self._shards):
            for file in shard.take_new(files, self._monitoring.remember_ns):
                self._splits.extend(split_file(file, None))
        took = self._clock.monotonic() - began
        self._look_again_at = began + max(self._monitoring.interval_s, took / _LISTING_SHARE)
