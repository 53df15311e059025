"""Where a Kafka source begins and stops in each partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from rekindle.datastream.connectors.kafka.partitions import KafkaTopicPartition
from rekindle.errors import GraphError


class KafkaOffsetResetStrategy(Enum):
    """Where to go on when an offset is not there: at the partition's end, at its beginning, or nowhere (an error)."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2


class OffsetsKind(Enum):
    """The kinds of initializers."""

    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"
    TIMESTAMP = "timestamp"
    SPECIFIC = "specific"


@dataclass(frozen=True)
class KafkaOffsetsInitializer:
    """Says where a source begins, or stops, in each partition. The offsets are looked up once, when the job starts.

    >>> KafkaOffsetsInitializer.earliest().kind.value
    'earliest'
    """

    kind: OffsetsKind
    reset: KafkaOffsetResetStrategy
    at_ms: int | None = None
    by_partition: Mapping[KafkaTopicPartition, int] = field(default_factory=dict)

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """Return the initializer that chooses the first record that each partition still has."""
        return KafkaOffsetsInitializer(OffsetsKind.EARLIEST, KafkaOffsetResetStrategy.EARLIEST)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Return the initializer that chooses the end of each partition, as it is when the job starts."""
        return KafkaOffsetsInitializer(OffsetsKind.LATEST, KafkaOffsetResetStrategy.LATEST)

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """Return the initializer that chooses the group's committed offsets, and where there is none the strategy's."""
        _check_strategy("committed_offsets()", offset_reset_strategy)
        return KafkaOffsetsInitializer(OffsetsKind.COMMITTED, offset_reset_strategy)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """Return the initializer that chooses the first record of each partition at or after a time in milliseconds.

        Where no record is that late, it is the partition's end.
        """
        if not isinstance(timestamp, int) or isinstance(timestamp, bool) or timestamp < 0:
            raise GraphError(f"KafkaOffsetsInitializer.timestamp() takes milliseconds since 1970, not {timestamp!r}.")
        return KafkaOffsetsInitializer(OffsetsKind.TIMESTAMP, KafkaOffsetResetStrategy.NONE, timestamp)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """Return the initializer that chooses these offsets.

        A partition that is not among them begins at the group's committed offset, and without one by the strategy. The
        strategy also counts when an offset is out of range.

        >>> specific = KafkaOffsetsInitializer.offsets({KafkaTopicPartition("orders", 0): 100})
        >>> specific.by_partition[KafkaTopicPartition("orders", 0)]
        100
        """
        _check_strategy("offsets()", offset_reset_strategy)
        return KafkaOffsetsInitializer(
            OffsetsKind.SPECIFIC, offset_reset_strategy, by_partition=checked_offsets("offsets()", offsets)
        )


def checked_offsets(where: str, offsets: Mapping[Any, Any]) -> dict[KafkaTopicPartition, int]:
    """Return offsets by partition; refuse what is no partition or no offset."""
    if not isinstance(offsets, Mapping):
        raise GraphError(f"{where} takes a dict of KafkaTopicPartition to offset, not {offsets!r}.")
    for partition, offset in offsets.items():
        if not isinstance(partition, KafkaTopicPartition):
            raise GraphError(f"{where} takes a dict whose keys are KafkaTopicPartition, not {partition!r}.")
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            raise GraphError(f"{where}: the offset of {partition} must be 0 or more, not {offset!r}.")
    return dict(offsets)


def _check_strategy(where: str, strategy: Any) -> None:
    if not isinstance(strategy, KafkaOffsetResetStrategy):
        raise GraphError(f"KafkaOffsetsInitializer.{where} takes a KafkaOffsetResetStrategy, not {strategy!r}.")
