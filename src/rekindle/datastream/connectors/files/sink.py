"""The file sink: writes records into files that become visible when their checkpoint is complete (I18)."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Generic, Self, TypeVar

from rekindle.clock import Clock, SystemClock
from rekindle.common.serialization import BulkWriterFactory, Encoder
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.connectors.files.buckets import BucketAssigner, checked_bucket
from rekindle.datastream.connectors.files.commit import FileCommitter, committable_of
from rekindle.datastream.connectors.files.compacting_commit import adopt
from rekindle.datastream.connectors.files.compaction import (
    FileCompactor,
    FileCompactStrategy,
    PendingFile,
    take_due,
)
from rekindle.datastream.connectors.files.file_paths import local_path
from rekindle.datastream.connectors.files.folders import disk_faults, make_folders, sync_folder
from rekindle.datastream.connectors.files.names import OutputFileConfig, WriterId
from rekindle.datastream.connectors.files.part_files import BulkPart, Part, RowPart
from rekindle.datastream.connectors.files.rolling import OnCheckpointRollingPolicy, RollingPolicy
from rekindle.datastream.connectors.sink_api import (
    Committer,
    CommitterInitContext,
    CommittingSinkWriter,
    Sink,
    SinkWriter,
    StatefulSinkWriter,
    SupportsCommitter,
    SupportsWriterState,
    WriterInitContext,
)
from rekindle.errors import GraphError

T = TypeVar("T")
#: A rolling policy that checks times is asked every this many records.
_TIME_CHECK_EVERY = 64


@dataclass(frozen=True)
class FileSinkSettings:
    """The settings of a file sink."""

    base_path: str
    row_format: Encoder | None = None
    bulk_format: BulkWriterFactory | None = None
    bucket_assigner: BucketAssigner | None = None  # None: by hour
    rolling_policy: RollingPolicy | None = None  # None: the format's default
    file_config: OutputFileConfig | None = None  # None: part-...
    compact_strategy: FileCompactStrategy | None = None  # None: files are not compacted
    compactor: FileCompactor | None = None
    #: Whether files are finished by checkpoints only, not by the end of a job without them.
    only_checkpoints_finish: bool = False

    @property
    def header(self) -> bytes:
        """The bytes at the beginning of each file."""
        return self.row_format.header if self.row_format is not None else b""

    def new_part(self, folder: str, name: str, writer_id: WriterId, now_ms: int) -> Part:
        """Begin a file."""
        if self.row_format is not None:
            return RowPart(folder, name, writer_id, now_ms, self.row_format)
        assert self.bulk_format is not None
        return BulkPart(folder, name, writer_id, now_ms, self.bulk_format)

    def piece(self, parts: int) -> int:
        """Return how much of one file may be buffered while there are `parts` files."""
        return RowPart.piece(parts) if self.row_format is not None else BulkPart.piece(parts)


class FileSinkBuilder:
    """The settings that the builders of file sinks share."""

    def __init__(self, settings: FileSinkSettings) -> None:
        self._settings = settings

    def with_bucket_check_interval(self, interval: int) -> Self:
        """Accepted without effect: records trigger the rolling policy, and every checkpoint closes all files."""
        if not isinstance(interval, int) or interval < 1:
            raise GraphError(f"with_bucket_check_interval() takes 1 millisecond or more, not {interval!r}.")
        return self

    def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Self:
        """Set the assigner of buckets, which are subdirectories. The default is a bucket per hour."""
        if not callable(getattr(bucket_assigner, "get_bucket_id", None)):
            raise GraphError(
                f"with_bucket_assigner() takes a BucketAssigner, not {bucket_assigner!r}: for a function use "
                "BucketAssigner.of(function)."
            )
        self._settings = replace(self._settings, bucket_assigner=bucket_assigner)
        return self

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
        """Set when files are closed between checkpoints."""
        if not isinstance(rolling_policy, RollingPolicy):
            raise GraphError(f"with_rolling_policy() takes a RollingPolicy, not {rolling_policy!r}.")
        if self._settings.bulk_format is not None and not isinstance(rolling_policy, OnCheckpointRollingPolicy):
            raise GraphError("Bulk formats close their files at checkpoints: use on_checkpoint_rolling_policy().")
        self._settings = replace(self._settings, rolling_policy=rolling_policy)
        return self

    def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
        """Set prefix and suffix of the names of finished files."""
        if not isinstance(output_file_config, OutputFileConfig):
            raise GraphError(f"with_output_file_config() takes an OutputFileConfig, not {output_file_config!r}.")
        self._settings = replace(self._settings, file_config=output_file_config)
        return self


class _CompactingBuilder(FileSinkBuilder):
    """The settings of a `FileSink`."""

    def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> Self:
        """Write the files of several checkpoints into one. They become visible when they are compacted."""
        if not isinstance(strategy, FileCompactStrategy):
            raise GraphError(f"enable_compact() takes a FileCompactStrategy, not {strategy!r}.")
        if not isinstance(compactor, FileCompactor):
            raise GraphError(f"enable_compact() takes a FileCompactor, not {compactor!r}.")
        if self._settings.bulk_format is not None and compactor.joins_bytes:
            raise GraphError(
                "Files of a bulk format cannot be put one after the other: compact them with a FileCompactor of your "
                "own, or take fewer checkpoints."
            )
        self._settings = replace(self._settings, compact_strategy=strategy, compactor=compactor)
        return self

    def disable_compact(self) -> Self:
        """Do not compact, which is the default. Files that wait in a restored checkpoint become visible as they are."""
        self._settings = replace(self._settings, compact_strategy=None, compactor=None)
        return self

    def build(self) -> FileSink[Any]:
        """Return the sink."""
        return FileSink(self._settings)


class FileSink(Sink[T], SupportsCommitter[dict[str, Any]], SupportsWriterState[T, dict[str, Any]], Generic[T]):
    """Writes records exactly once into files, in buckets below a directory.

    Files in progress are hidden. A checkpoint closes them, and when it is complete they get their final names. So
    readers see only whole files of completed checkpoints. Without checkpoints, files get their names at the job's end.

    >>> sink = (
    ...     FileSink.for_row_format("/data/words", Encoder.simple_string_encoder())
    ...     .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    ...     .build()
    ... )
    """

    class RowFormatBuilder(_CompactingBuilder):
        """Builds a sink whose records are encoded one by one."""

    class BulkFormatBuilder(_CompactingBuilder):
        """Builds a sink whose records are written many at a time."""

    def __init__(self, settings: FileSinkSettings) -> None:
        """Do not call directly: use `for_row_format` or `for_bulk_format`."""
        self._settings = settings

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Build a sink that encodes records one by one: text, JSON, CSV."""
        return FileSink.RowFormatBuilder(row_settings("FileSink.for_row_format()", base_path, encoder))

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSink.BulkFormatBuilder:
        """Build a sink that writes records many at a time: Parquet, Arrow."""
        return FileSink.BulkFormatBuilder(bulk_settings("FileSink.for_bulk_format()", base_path, writer_factory))

    @property
    def only_checkpoints_commit(self) -> bool:
        """Whether the end of a job without checkpoints leaves the files in progress."""
        return self._settings.only_checkpoints_finish

    def for_stream_type(self, type_info: TypeInformation | None) -> FileSink[T]:
        """Return the sink whose encoder knows the type of the stream."""
        encoder = self._settings.row_format
        if encoder is None:
            return self
        return type(self)(replace(self._settings, row_format=encoder.for_stream_type(type_info)))

    def create_writer(self, context: WriterInitContext) -> SinkWriter[T]:
        """Return the writer of one subtask."""
        return FileWriter(self._settings, WriterId.of(context))

    def restore_writer(self, context: WriterInitContext, recovered_state: list[dict[str, Any]]) -> FileWriter[T]:
        """Return a writer that also has the files which wait for their compaction."""
        own = WriterId.of(context)
        return FileWriter(self._settings, own, pending=[adopt(PendingFile(**state), own) for state in recovered_state])

    def create_committer(self, context: CommitterInitContext) -> Committer[dict[str, Any]]:
        """Return a committer, which makes files visible."""
        strategy = self._settings.compact_strategy
        threads = strategy.get_num_compact_threads() if strategy is not None else 1
        return FileCommitter(
            self._settings.base_path, context, self._settings.compactor, self._settings.header, threads
        )


def row_settings(where: str, base_path: str, encoder: Encoder) -> FileSinkSettings:
    """Return the settings of a sink that encodes records one by one."""
    if not isinstance(encoder, Encoder):
        raise GraphError(f"{where} takes an Encoder, such as Encoder.simple_string_encoder(), not {encoder!r}.")
    return FileSinkSettings(_directory(where, base_path), row_format=encoder)


def bulk_settings(where: str, base_path: str, writer_factory: BulkWriterFactory) -> FileSinkSettings:
    """Return the settings of a sink that writes records many at a time."""
    if not isinstance(writer_factory, BulkWriterFactory):
        raise GraphError(
            f"{where} takes a BulkWriterFactory, such as ParquetBulkWriters.for_row_type(type), not {writer_factory!r}."
        )
    return FileSinkSettings(_directory(where, base_path), bulk_format=writer_factory)


def _directory(where: str, base_path: Any) -> str:
    path = local_path(where, base_path)
    if os.path.exists(path) and not os.path.isdir(path):
        raise GraphError(f"{where}: {path} is a file; name a directory.")
    return path


class FileWriter(CommittingSinkWriter[T, dict[str, Any]], StatefulSinkWriter[T, dict[str, Any]], Generic[T]):
    """Writes one subtask's files in progress, one per bucket."""

    def __init__(
        self,
        settings: FileSinkSettings,
        writer_id: WriterId,
        clock: Clock | None = None,
        pending: Sequence[PendingFile] = (),
    ) -> None:
        self._settings = settings
        self._pending = list(pending)  # closed, and waiting for their compaction
        self._end_of_input = False
        self._writer_id = writer_id
        self._clock = clock or SystemClock()
        self._parts: dict[str, Part] = {}
        self._closed: list[Part] = []  # closed, but not yet returned by `prepare_commit`
        self._numbers = count()
        config = settings.file_config or OutputFileConfig.builder().build()
        #: Unique to this writer, so that a replay never reuses the names of an earlier attempt.
        self._prefix, self._suffix = f"{config.get_part_prefix()}-{uuid.uuid4()}", config.get_part_suffix()
        assigner = settings.bucket_assigner or BucketAssigner.date_time_bucket_assigner()
        self._bucket_of: Callable[[Any, BucketAssigner.Context], str] = assigner.get_bucket_id
        self._bucket_context = BucketAssigner.Context(self._clock)
        default = RollingPolicy.default_rolling_policy if settings.row_format is not None else OnCheckpointRollingPolicy
        self._policy: RollingPolicy = settings.rolling_policy or default()
        self._records = 0
        self._piece = self._new_piece()
        with disk_faults(settings.base_path):
            make_folders(settings.base_path)

    def write(self, element: T, context: SinkWriter.Context) -> None:
        """Write a record into the file of its bucket."""
        self._bucket_context.of_writer = context
        bucket = self._bucket_of(element, self._bucket_context)
        part = self._parts.get(bucket)
        if part is None:
            part = self._begin(bucket)
        part.touched = True
        if part.add(element) >= self._piece:
            self._write_out(bucket, part)
        self._records += 1
        if self._records % _TIME_CHECK_EVERY == 0 and self._policy.checks_time:
            for each in list(self._parts):
                self._check(each)

    def flush(self, end_of_input: bool) -> None:
        """Note the end: `prepare_commit` follows, and writes and closes each file in one step."""
        self._end_of_input = end_of_input

    def prepare_commit(self) -> list[dict[str, Any]]:
        """Sync and close every file, because no file may contain records of two checkpoints."""
        for part in self._parts.values():
            part.finish()
            self._closed.append(part)
        self._parts = {}
        self._piece = self._new_piece()
        for folder in {part.folder: None for part in self._closed}:
            with disk_faults(folder):
                sync_folder(folder)
        committables = [committable_of(part) for part in self._closed]
        self._closed = []
        if self._settings.compact_strategy is None and not self._pending:
            return committables
        return self._due([PendingFile(**committable) for committable in committables])

    def _due(self, closed: list[PendingFile]) -> list[dict[str, Any]]:
        waiting = [file.after_checkpoint() for file in (*self._pending, *closed)]
        compactor = self._settings.compactor
        several = compactor is not None and compactor.takes_several
        due, self._pending = take_due(waiting, self._settings.compact_strategy, several, self._end_of_input)
        return due

    def snapshot_state(self, checkpoint_id: int) -> list[dict[str, Any]]:
        """Return the files that wait for their compaction."""
        return [file.to_state() for file in self._pending]

    def close(self) -> None:
        """Delete the files that `prepare_commit` has not returned. They will never be committed."""
        for part in (*self._parts.values(), *self._closed):
            part.discard()
        self._parts, self._closed = {}, []

    def _begin(self, bucket: str) -> Part:
        folder = os.path.join(self._settings.base_path, checked_bucket(bucket)).rstrip("/")
        with disk_faults(folder):
            make_folders(folder)
        name = f"{self._prefix}-{next(self._numbers)}{self._suffix}"
        part = self._settings.new_part(folder, name, self._writer_id, self._clock.wall_ms())
        self._parts[bucket] = part
        self._piece = self._new_piece()
        return part

    def _write_out(self, bucket: str, part: Part) -> None:
        limit = self._policy.check_bytes
        if limit is not None and part.total() >= limit:
            self._check(bucket)
        if bucket in self._parts:
            part.write_out()

    def _check(self, bucket: str) -> None:
        part, now_ms = self._parts[bucket], self._clock.wall_ms()
        if part.touched:
            part.touched, part.written_ms = False, now_ms
        if self._policy.should_roll(part.total(), now_ms - part.begun_ms, now_ms - part.written_ms):
            part.finish()
            self._closed.append(part)
            del self._parts[bucket]

    def _new_piece(self) -> int:
        piece = self._settings.piece(max(1, len(self._parts)))
        limit = self._policy.check_bytes
        return piece if limit is None or self._settings.row_format is None else min(piece, limit)
