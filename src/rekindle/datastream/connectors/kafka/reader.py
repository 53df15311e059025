"""The reader of a Kafka source: polls the client on the task's thread, and knows the offset of every partition."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from typing import Any, Generic, TypeVar

from rekindle.datastream.connectors.base import Batch, SourceReader, SourceReaderContext, SourceSplit
from rekindle.datastream.connectors.kafka.client_properties import KAFKA_LOG, confluent_kafka
from rekindle.datastream.connectors.kafka.message_feed import MessageFeed
from rekindle.datastream.connectors.kafka.offset_commits import OffsetCommitMode, PendingOffsets, offset_commit_mode
from rekindle.datastream.connectors.kafka.partition_progress import PartitionProgress, positions
from rekindle.datastream.connectors.kafka.partitions import KafkaTopicPartition, partition_of
from rekindle.datastream.connectors.kafka.record_decoding import RecordDecoding
from rekindle.datastream.connectors.kafka.source_metrics import KafkaSourceMetrics
from rekindle.datastream.connectors.kafka.source_settings import SourceSettings
from rekindle.datastream.output_tag import OutputTag

T = TypeVar("T")


class KafkaReader(SourceReader[T], Generic[T]):
    """Reads the partitions of one subtask. The client connects at the first look for records."""

    def __init__(
        self,
        settings: SourceSettings,
        decoding: RecordDecoding,
        context: SourceReaderContext,
        splits: list[SourceSplit],
    ) -> None:
        self._settings = settings
        self._context = context
        self._decoding = decoding.open(context)
        self._side_output = decoding.poison.tag
        self._progress: dict[KafkaTopicPartition, PartitionProgress] = {}
        self._newly_finished: list[str] = []  # the engine has not heard of them yet
        self._told_finished: set[str] = set()
        self._paused: set[KafkaTopicPartition] = set()
        self._feed: MessageFeed | None = None
        self._closed = False
        self.offset_commit_mode = self._commit_mode()
        self.pending_offsets_to_commit = PendingOffsets()
        self._metrics = KafkaSourceMetrics(context.metric_group, self._end_of)
        self._ends = settings.stops and settings.discovery_interval_ms is None
        self._enter(splits)

    def _commit_mode(self) -> OffsetCommitMode:
        settings = self._settings
        if settings.group_id is None:
            return OffsetCommitMode.DISABLED
        return offset_commit_mode(
            settings.auto_commit, settings.commit_on_checkpoints, self._context.checkpointing_enabled
        )

    # -- partitions ---------------------------------------------------------------------------------------------------

    def _enter(self, splits: list[SourceSplit]) -> list[PartitionProgress]:
        entered = [PartitionProgress.of(split) for split in splits]
        self._progress.update({each.partition: each for each in entered})
        for each in entered:
            self._note_end(each)
        self._metrics.add(entered)
        self._has_one_topic = len({each.topic for each in self._progress}) == 1
        return entered

    def add_splits(self, splits: list[SourceSplit]) -> None:
        """Read partitions that were discovered while the job runs."""
        entered = self._enter(splits)
        KAFKA_LOG.info("%s reads %s too.", self._context.task_name, [each.split_id for each in entered])
        if self._feed is not None:
            self._feed.add(entered)

    def pause_splits(self, paused: Collection[str]) -> None:
        """Return no records of these partitions; those fetched already come first when they go on."""
        wanted = {partition_of(split_id) for split_id in paused} & self._progress.keys()
        feed = self._open_feed()
        feed.resume([each for each in self._paused - wanted if not self._progress[each].finished])
        feed.pause([each for each in wanted - self._paused if not self._progress[each].finished])
        self._paused = wanted

    def _open_feed(self) -> MessageFeed:
        if self._feed is None:
            periodic = self.offset_commit_mode is OffsetCommitMode.KAFKA_PERIODIC
            client = self._settings.consumer(self._context.index_of_subtask, periodic)
            self._feed = MessageFeed(self._settings, self._progress, client, self._committed)
        return self._feed

    def _end_of(self, partition: KafkaTopicPartition) -> int | None:
        return None if self._feed is None or self._closed else self._feed.end_of(partition)

    # -- records ------------------------------------------------------------------------------------------------------

    def is_available(self) -> bool:
        """Fetch what is there, and return whether `poll` has something to tell."""
        return bool(self._newly_finished) or self._at_end() or self._open_feed().has_messages()

    def waiting_splits(self) -> list[str] | None:
        """Return the partitions whose end, as of the last fetch, is not read; also those whose end is not known yet."""
        if self._feed is None:
            return [each.split_id for each in self._progress.values()]
        dry = not self._feed.has_messages()  # then a partition may end with offsets that hold no record
        ends = ((each, self._feed.end_of(each.partition)) for each in self._progress.values() if not each.finished)
        return [each.split_id for each, end in ends if end is None or not (dry or each.next_offset >= end)]

    def poll(self, max_records: int) -> Batch[T] | None:
        """Return the next records, or None when every partition is read to its stop and no more can come."""
        if self._at_end():
            return None
        messages = self._open_feed().take(max_records)
        for progress in self._progress.values() if self._settings.stops else ():
            self._note_end(progress)
        batch = self._batch(messages)
        if self.offset_commit_mode is OffsetCommitMode.KAFKA_PERIODIC and messages:
            self._open_feed().store(positions(self._progress.values()))
        return batch

    def _at_end(self) -> bool:
        return self._ends and all(each.finished for each in self._progress.values())

    def _batch(self, messages: list[Any]) -> Batch[T]:
        records: list[T] = []
        timestamps: list[int] | None = [] if self._context.needs_timestamps else None
        runs: list[tuple[str, int]] = []
        aside: dict[OutputTag, list[Any]] = {}
        for progress, run in self._runs(messages):
            decoded = self._decoding.decode(run, timestamps is not None)
            progress.advance(run[-1].offset())
            records = records + decoded.records if records else decoded.records
            if timestamps is not None and decoded.timestamps is not None:
                timestamps += decoded.timestamps
            runs.append((progress.split_id, len(decoded.records)))
            if decoded.poison:
                self._metrics.refused(len(decoded.poison))
                if self._side_output is not None:
                    aside.setdefault(self._side_output, []).extend(decoded.poison)
        finished, self._newly_finished = self._newly_finished, []
        return Batch(records, timestamps, runs, finished, aside)

    def _runs(self, messages: list[Any]) -> Iterator[tuple[PartitionProgress, list[Any]]]:
        """Divide messages into runs of one partition, each up to the partition's stop."""
        for partition, run in self._by_partition(messages):
            progress = self._progress[partition]
            if progress.finished:
                continue
            kept = progress.before_stop(run)
            if kept:
                yield progress, kept
            self._note_end(progress)

    def _by_partition(self, messages: list[Any]) -> Iterator[tuple[KafkaTopicPartition, list[Any]]]:
        if len(self._progress) == 1:
            if messages:
                yield next(iter(self._progress)), messages
            return
        for number, group in groupby(messages, confluent_kafka().Message.partition):
            run = list(group)
            if self._has_one_topic:
                yield KafkaTopicPartition(run[0].topic(), number), run
                continue
            for topic, part in groupby(run, confluent_kafka().Message.topic):
                yield KafkaTopicPartition(topic, number), list(part)

    def _note_end(self, progress: PartitionProgress) -> None:
        """Tell the engine, once, that a partition is finished."""
        if progress.finished and progress.split_id not in self._told_finished:
            self._told_finished.add(progress.split_id)
            self._newly_finished.append(progress.split_id)
            if self._feed is not None:
                self._feed.drop(progress.partition)

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def snapshot_state(self, checkpoint_id: int) -> list[SourceSplit]:
        """Return every partition with its next offset, finished ones included; the offsets wait for the completion."""
        if self.offset_commit_mode is OffsetCommitMode.ON_CHECKPOINTS:
            self.pending_offsets_to_commit.put(checkpoint_id, positions(self._progress.values()))
        return [each.split() for each in self._progress.values()]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Commit the checkpoint's offsets to Kafka, without waiting; a failure is logged and counted."""
        if (
            self.offset_commit_mode is OffsetCommitMode.ON_CHECKPOINTS
            and checkpoint_id in self.pending_offsets_to_commit
        ):
            self._commit(self.pending_offsets_to_commit.take(checkpoint_id) or {})

    def _commit(self, offsets: Mapping[KafkaTopicPartition, int]) -> None:
        try:
            self._open_feed().commit(offsets)
        except confluent_kafka().KafkaException as error:
            self._metrics.committed(error, [])
            self._warn_of_commit(error)

    def _committed(self, error: Any, partitions: list[Any]) -> None:
        """Hear the broker's answer to a commit; this is called while the reader fetches."""
        self._metrics.committed(error, partitions)
        failure = error or next((each.error for each in partitions if each.error is not None), None)
        if failure is not None:
            self._warn_of_commit(failure)

    def _warn_of_commit(self, error: Any) -> None:
        KAFKA_LOG.warning(
            "%s could not commit its offsets to the group '%s': %s. The next checkpoint tries again.",
            self._context.task_name or "The source",
            self._settings.group_id,
            error,
        )

    def close(self) -> None:
        """Close the client."""
        self._closed = True
        if self._feed is not None:
            self._feed.close()
