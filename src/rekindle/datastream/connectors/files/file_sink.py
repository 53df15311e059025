"""The file sink: writes records into files that become visible when their checkpoint is complete (I18)."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Generic, Self, TypeVar

from rekindle.clock import Clock, SystemClock
from rekindle.common.serialization import BulkWriterFactory, Encoder
from rekindle.datastream.connectors.files.buckets import BucketAssigner, checked_bucket
from rekindle.datastream.connectors.files.commit import FileCommitter, committable_of
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
    SupportsCommitter,
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

    def new_part(self, folder: str, name: str, writer_id: WriterId, now_ms: int) -> Part:
        """Begin a file."""
        if self.row_format is not None:
            return RowPart(folder, name, writer_id, now_ms, self.row_format)
        assert self.bulk_format is not None
        return BulkPart(folder, name, writer_id, now_ms, self.bulk_format)

    def piece(self, parts: int) -> int:
        """Return how much of one file may be buffered while there are `parts` files."""
        return RowPart.piece(parts) if self.row_format is not None else BulkPart.piece(parts)


class _Builder:
    """The settings that row formats and bulk formats share."""

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

    def build(self) -> FileSink[Any]:
        """Return the sink."""
        return FileSink(self._settings)


class FileSink(Sink[T], SupportsCommitter[dict[str, Any]], Generic[T]):
    """Writes records exactly once into files, in buckets below a directory.

    Files in progress are hidden. A checkpoint closes them, and when it is complete they get their final names. So
    readers see only whole files of completed checkpoints. Without checkpoints, files get their names at the job's end.

    >>> sink = (
    ...     FileSink.for_row_format("/data/words", Encoder.simple_string_encoder())
    ...     .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    ...     .build()
    ... )
    """

    class RowFormatBuilder(_Builder):
        """Builds a sink whose records are encoded one by one."""

    class BulkFormatBuilder(_Builder):
        """Builds a sink whose records are written many at a time."""

    def __init__(self, settings: FileSinkSettings) -> None:
        """Do not call directly: use `for_row_format` or `for_bulk_format`."""
        self._settings = settings

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Build a sink that encodes records one by one: text, JSON, CSV."""
        where = "FileSink.for_row_format()"
        if not isinstance(encoder, Encoder):
            raise GraphError(f"{where} takes an Encoder, such as Encoder.simple_string_encoder(), not {encoder!r}.")
        return FileSink.RowFormatBuilder(FileSinkSettings(_directory(where, base_path), row_format=encoder))

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSink.BulkFormatBuilder:
        """Build a sink that writes records many at a time: Parquet, Arrow."""
        where = "FileSink.for_bulk_format()"
        if not isinstance(writer_factory, BulkWriterFactory):
            raise GraphError(
                f"{where} takes a BulkWriterFactory, such as ParquetBulkWriters.for_row_type(type), "
                f"not {writer_factory!r}."
            )
        return FileSink.BulkFormatBuilder(FileSinkSettings(_directory(where, base_path), bulk_format=writer_factory))

    def create_writer(self, context: WriterInitContext) -> SinkWriter[T]:
        """Return the writer of one subtask."""
        return FileWriter(self._settings, WriterId.of(context))

    def create_committer(self, context: CommitterInitContext) -> Committer[dict[str, Any]]:
        """Return a committer, which makes files visible."""
        return FileCommitter(self._settings.base_path, context)


def _directory(where: str, base_path: Any) -> str:
    path = local_path(where, base_path)
    if os.path.exists(path) and not os.path.isdir(path):
        raise GraphError(f"{where}: {path} is a file; name a directory.")
    return path


class FileWriter(CommittingSinkWriter[T, dict[str, Any]], Generic[T]):
    """Writes one subtask's files in progress, one per bucket."""

    def __init__(self, settings: FileSinkSettings, writer_id: WriterId, clock: Clock | None = None) -> None:
        self._settings = settings
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
        """Do nothing: `prepare_commit` follows, and writes and closes each file in one step."""

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
        return committables

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
