"""From Kafka's messages to the stream's records, many at a time, with a choice for those that cannot be decoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import compress, repeat
from operator import is_not, itemgetter
from typing import Any

from rekindle.common.serialization import DeserializationSchema
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.connectors.kafka.client_properties import KAFKA_LOG, confluent_kafka
from rekindle.datastream.connectors.kafka.kafka_record import (
    KafkaRecord,
    KafkaRecordDeserializationSchema,
    record_of,
)
from rekindle.datastream.connectors.kafka.poison_records import PoisonRecordHandling
from rekindle.errors import SerializationError

Messages = list[Any]
DecodeAll = Callable[[Messages], list[Any]]


@dataclass
class Decoded:
    """The records of a run of messages, their timestamps, and the messages that could not be decoded."""

    records: list[Any]
    timestamps: list[int] | None = None
    poison: list[KafkaRecord] = field(default_factory=list)


class RecordDecoding:
    """Decodes messages with the program's deserializer. A record that decodes to None is left out."""

    def __init__(self, deserializer: Any, whole_record: bool, poison: PoisonRecordHandling) -> None:
        self._deserializer = deserializer
        self._whole_record = whole_record
        self.poison = poison

    def open(self, context: Any) -> OpenDecoding:
        """Open the deserializer in a subtask."""
        deserializer = self._deserializer
        if isinstance(deserializer, DeserializationSchema | KafkaRecordDeserializationSchema):
            deserializer.open(context)
        return OpenDecoding(self._decode_all(), self.poison)

    def _decode_all(self) -> DecodeAll:
        deserializer = self._deserializer
        if self._whole_record:
            decode = getattr(deserializer, "deserialize", deserializer)
            return lambda messages: [decode(record_of(message)) for message in messages]
        if isinstance(deserializer, DeserializationSchema):
            return _of_values(deserializer.deserialize_all)
        return _of_values(lambda values: list(map(deserializer, values)))

    def produced_type(self) -> TypeInformation | None:
        """Return the type that the deserializer names, if any."""
        if isinstance(self._deserializer, DeserializationSchema | KafkaRecordDeserializationSchema):
            return self._deserializer.get_produced_type()
        return None


class OpenDecoding:
    """Decodes messages in a subtask."""

    def __init__(self, decode_all: DecodeAll, poison: PoisonRecordHandling) -> None:
        self._decode_all = decode_all
        self._poison = poison

    def decode(self, messages: Messages, with_timestamps: bool) -> Decoded:
        """Decode messages of one partition."""
        try:
            records = self._decode_all(messages)
        except Exception:
            return self._one_by_one(messages, with_timestamps)
        if not all(map(is_not, records, repeat(None))):
            kept = [record is not None for record in records]
            records, messages = list(compress(records, kept)), list(compress(messages, kept))
        return Decoded(records, _timestamps(messages) if with_timestamps else None)

    def _one_by_one(self, messages: Messages, with_timestamps: bool) -> Decoded:
        """Decode messages of which at least one cannot be decoded."""
        result = Decoded([], [] if with_timestamps else None)
        for message in messages:
            try:
                records = self._decode_all([message])
            except Exception as error:
                result.poison.append(self._poisoned(message, error))
                continue
            if records[0] is not None:
                result.records.append(records[0])
                if result.timestamps is not None:
                    result.timestamps.extend(_timestamps([message]))
        return result

    def _poisoned(self, message: Any, error: Exception) -> KafkaRecord:
        position = f"offset {message.offset()} of partition {message.partition()} of Kafka topic '{message.topic()}'"
        words = str(error).rstrip(".") or type(error).__name__
        if self._poison.fails:
            raise SerializationError(
                f"The record at {position} cannot be decoded: {words}. Correct the deserializer, or leave such records "
                "out with set_poison_record_handling(PoisonRecordHandling.skip()) or .side_output(tag)."
            ) from error
        KAFKA_LOG.warning("The record at %s cannot be decoded and is left out: %s.", position, words)
        return record_of(message)


def _of_values(decode_values: Callable[[list[bytes]], list[Any]]) -> DecodeAll:
    """Decode the values; a message without one (a tombstone) has no record."""

    value_of = confluent_kafka().Message.value

    def decode(messages: Messages) -> list[Any]:
        values = list(map(value_of, messages))
        if None not in values:
            return decode_values(values)
        decoded = iter(decode_values([value for value in values if value is not None]))
        return [None if value is None else next(decoded) for value in values]

    return decode


def _timestamps(messages: Messages) -> list[int]:
    return list(map(itemgetter(1), map(confluent_kafka().Message.timestamp, messages)))
