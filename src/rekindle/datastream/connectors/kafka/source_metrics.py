"""The metrics of a Kafka source, under Flink's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rekindle.datastream.connectors.kafka.partition_progress import PartitionProgress
from rekindle.datastream.connectors.kafka.partitions import KafkaTopicPartition
from rekindle.metrics import Counter, MetricGroup

EndOf = Callable[[KafkaTopicPartition], int | None]
#: The value of an offset that is not known yet, as in Flink.
_UNKNOWN = -1


class KafkaSourceMetrics:
    """Counts commits and refused records, and shows offsets and lag of each partition."""

    def __init__(self, group: MetricGroup | None, end_of: EndOf) -> None:
        self._end_of = end_of
        self._progress: list[PartitionProgress] = []
        self._committed: dict[KafkaTopicPartition, int] = {}
        self._reader = group.add_group("KafkaSourceReader") if group is not None else None
        self._counters: dict[str, Counter] = {}
        if group is not None and self._reader is not None:
            self._counters = {name: self._reader.counter(name) for name in ("commitsSucceeded", "commitsFailed")}
            self._counters["numRecordsInErrors"] = group.counter("numRecordsInErrors")
            group.gauge("pendingRecords", self.pending_records)
            self._reader.add_group("KafkaConsumer").gauge("records-lag-max", self.records_lag_max)

    def add(self, progress: Iterable[PartitionProgress]) -> None:
        """Show the offsets of these partitions too."""
        for each in progress:
            self._progress.append(each)
            if self._reader is not None:
                topic, number = each.partition
                group = self._reader.add_group("topic", topic).add_group("partition", str(number))
                group.gauge("currentOffset", _current_offset(each))
                group.gauge("committedOffset", self._committed_offset(each.partition))

    def refused(self, count: int) -> None:
        """Count records that could not be decoded."""
        self._count("numRecordsInErrors", count)

    def committed(self, error: Any, partitions: list[Any]) -> None:
        """Count the answer to a commit."""
        failed = error is not None or any(each.error is not None for each in partitions)
        self._count("commitsFailed" if failed else "commitsSucceeded", 1)
        if not failed:
            self._committed.update(
                {KafkaTopicPartition(each.topic, each.partition): each.offset for each in partitions}
            )

    def _count(self, name: str, count: int) -> None:
        if name in self._counters:
            self._counters[name].inc(count)

    def pending_records(self) -> int:
        """Return how many records wait in Kafka, over all partitions of the subtask."""
        return sum(self._lags())

    def records_lag_max(self) -> int:
        """Return how many records wait in the partition where most wait."""
        return max(self._lags(), default=0)

    def _lags(self) -> list[int]:
        ends = [(self._end_of(each.partition), each.next_offset) for each in self._progress if not each.finished]
        return [max(0, end - max(0, position)) for end, position in ends if end is not None]

    def _committed_offset(self, partition: KafkaTopicPartition) -> Callable[[], int]:
        return lambda: self._committed.get(partition, _UNKNOWN)


def _current_offset(progress: PartitionProgress) -> Callable[[], int]:
    """The offset of the last record that was read."""
    return lambda: max(progress.next_offset - 1, _UNKNOWN)
