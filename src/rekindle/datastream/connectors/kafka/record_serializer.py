"""The record serializer of a Kafka sink: topic, key, value, headers, partition and timestamp of a record's message."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rekindle.common.serialization import SerializationSchema
from rekindle.datastream.connectors.sink_api import SinkWriter
from rekindle.errors import GraphError

#: A message as the arguments of `Producer.produce`: (topic, value), (topic, value, key), or with two unused places
#: (topic, value, key, partition, None, None, timestamp, headers).
Message = tuple[Any, ...]
Headers = Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]]
#: Returns the partitions of a topic.
PartitionsOf = Callable[[str], list[int]]
_ANY_PARTITION = -1
_NO_TIMESTAMP = 0


class KafkaTopicSelector(ABC):
    """Chooses the topic of each record.

    >>> class ByKind(KafkaTopicSelector):
    ...     def apply(self, data):
    ...         return "orders-" + data["kind"]
    >>> ByKind().apply({"kind": "new"})
    'orders-new'
    """

    @abstractmethod
    def apply(self, data: Any) -> str:
        """Return the topic of a record."""


@dataclass(frozen=True)
class _Parts:
    """The parts of a serializer, as its builder collects them."""

    topic: str | None = None
    select_topic: Callable[[Any], str] | None = None
    value: Any = None
    key: Any = None
    headers: Callable[[Any], Headers] | None = None
    partitioner: Any = None
    timestamp: Callable[[Any], int | None] | None = None
    #: Whether messages get the timestamps of their records.
    write_timestamps: bool = True


class KafkaRecordSerializationSchema:
    """Turns records into messages of Kafka. Make one with `KafkaRecordSerializationSchema.builder()`.

    The message gets the record's timestamp, if it has one. A value serializer that returns None writes a tombstone,
    with which a compacted topic deletes the key.

    >>> from rekindle.common.serialization import SimpleStringSchema
    >>> schema = (
    ...     KafkaRecordSerializationSchema.builder()
    ...     .set_topic("words")
    ...     .set_key_serialization_schema(lambda word: word[:1].encode())
    ...     .set_value_serialization_schema(SimpleStringSchema())
    ...     .build()
    ... )
    >>> schema.topic
    'words'
    """

    def __init__(self, parts: _Parts) -> None:
        """Do not call directly: use `KafkaRecordSerializationSchema.builder()`."""
        self._parts = parts

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Return a builder without settings."""
        return KafkaRecordSerializationSchemaBuilder()

    @property
    def topic(self) -> str | None:
        """The topic of all records, or None if a selector chooses one for each."""
        return self._parts.topic

    def open(self) -> None:
        """Open the schemas, once in each subtask."""
        for schema in (self._parts.key, self._parts.value):
            if isinstance(schema, SerializationSchema):
                schema.open()

    def messages(self, partitions_of: PartitionsOf) -> Callable[[Any, SinkWriter.Context], Message]:
        """Return the function that turns a record into a message; simple schemas get a short one."""
        parts = self._parts
        if parts.headers or parts.partitioner or parts.timestamp or parts.topic is None:
            return _full_message(parts, partitions_of)
        if not parts.write_timestamps and parts.key is None:
            return _value_only(parts.topic, _bytes_of(parts.value))
        return _short_message(parts.topic, _bytes_of(parts.value), _bytes_of(parts.key) if parts.key else None)

    def without_timestamps(self) -> KafkaRecordSerializationSchema:
        """Return the schema with messages that get the time of their sending as timestamp."""
        return KafkaRecordSerializationSchema(replace(self._parts, write_timestamps=False))


class KafkaRecordSerializationSchemaBuilder:
    """Builds a `KafkaRecordSerializationSchema`: a topic and a value serializer are required.

    Serializers are `SerializationSchema`s or functions of the record that return bytes.

    >>> import json
    >>> schema = (
    ...     KafkaRecordSerializationSchema.builder()
    ...     .set_topic_selector(lambda order: "orders-" + order["kind"])
    ...     .set_value_serialization_schema(lambda order: json.dumps(order).encode())
    ...     .set_header_provider(lambda order: {"source": b"shop"})
    ...     .set_partitioner(lambda order, key, value, topic, partitions: partitions[order["shop"] % len(partitions)])
    ...     .set_timestamp_extractor(lambda order: order["at_ms"])
    ...     .build()
    ... )
    """

    def __init__(self) -> None:
        """Begin without settings."""
        self._parts = _Parts()

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """Write all records to this topic."""
        if not isinstance(topic, str) or not topic:
            raise GraphError(f"set_topic() takes the name of a topic, not {topic!r}.")
        self._parts = replace(self._parts, topic=topic, select_topic=None)
        return self

    def set_topic_selector(
        self, topic_selector: KafkaTopicSelector | Callable[[Any], str]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Choose the topic of each record with a `KafkaTopicSelector` or a function of the record."""
        select = topic_selector.apply if isinstance(topic_selector, KafkaTopicSelector) else topic_selector
        if not callable(select):
            raise TypeError(f"set_topic_selector() takes a KafkaTopicSelector or a function, not {topic_selector!r}.")
        self._parts = replace(self._parts, topic=None, select_topic=select)
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema | Callable[[Any], bytes | None]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set what turns a record into the message's value; None as a value is a tombstone."""
        _check_schema("set_value_serialization_schema()", value_serialization_schema)
        self._parts = replace(self._parts, value=value_serialization_schema)
        return self

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema | Callable[[Any], bytes | None]
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Set what turns a record into the message's key. Without it, messages have no key."""
        _check_schema("set_key_serialization_schema()", key_serialization_schema)
        self._parts = replace(self._parts, key=key_serialization_schema)
        return self

    def set_header_provider(self, header_provider: Callable[[Any], Headers]) -> KafkaRecordSerializationSchemaBuilder:
        """Set a function of the record that returns the message's headers, as a dict or a list of pairs."""
        _check_function("set_header_provider()", header_provider)
        self._parts = replace(self._parts, headers=header_provider)
        return self

    def set_partitioner(self, partitioner: Callable[..., int]) -> KafkaRecordSerializationSchemaBuilder:
        """Set a function of (record, key, value, topic, partitions) that returns the message's partition."""
        chosen = getattr(partitioner, "partition", partitioner)
        _check_function("set_partitioner()", chosen)
        self._parts = replace(self._parts, partitioner=chosen)
        return self

    def set_timestamp_extractor(self, extractor: Callable[[Any], int | None]) -> KafkaRecordSerializationSchemaBuilder:
        """Set a function of the record that returns the message's timestamp in milliseconds."""
        _check_function("set_timestamp_extractor()", extractor)
        self._parts = replace(self._parts, timestamp=extractor)
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        """Return the schema."""
        if self._parts.topic is None and self._parts.select_topic is None:
            raise GraphError("A Kafka record serializer needs a topic: call set_topic() or set_topic_selector().")
        if self._parts.value is None:
            raise GraphError("A Kafka record serializer needs values: call set_value_serialization_schema().")
        return KafkaRecordSerializationSchema(self._parts)


def _check_schema(where: str, schema: Any) -> None:
    if not callable(getattr(schema, "serialize", schema)) or isinstance(schema, type):
        raise GraphError(f"{where} takes a SerializationSchema or a function of the record, not {schema!r}.")


def _check_function(where: str, function: Any) -> None:
    if not callable(function):
        raise GraphError(f"{where} takes a function, not {function!r}.")


def _bytes_of(schema: Any) -> Callable[[Any], Any]:
    serialize: Callable[[Any], Any] = getattr(schema, "serialize", schema)
    return serialize


def _value_only(topic: str, value: Callable[[Any], Any]) -> Callable[[Any, SinkWriter.Context], Message]:
    return lambda element, context: (topic, value(element))


def _short_message(
    topic: str, value: Callable[[Any], Any], key: Callable[[Any], Any] | None
) -> Callable[[Any, SinkWriter.Context], Message]:
    """Messages of a fixed topic with a value and perhaps a key: most programs need no more."""

    def with_value(element: Any, context: SinkWriter.Context) -> Message:
        timestamp = context.timestamp()
        if timestamp is None or timestamp < 0:
            return (topic, value(element))
        return (topic, value(element), None, _ANY_PARTITION, None, None, timestamp)

    def with_key(element: Any, context: SinkWriter.Context) -> Message:
        timestamp = context.timestamp()
        if timestamp is None or timestamp < 0:
            return (topic, value(element), key(element))  # type: ignore[misc]
        return (topic, value(element), key(element), _ANY_PARTITION, None, None, timestamp)  # type: ignore[misc]

    return with_value if key is None else with_key


def _full_message(parts: _Parts, partitions_of: PartitionsOf) -> Callable[[Any, SinkWriter.Context], Message]:
    value_of, key_of = _bytes_of(parts.value), _bytes_of(parts.key) if parts.key else None

    def message(element: Any, context: SinkWriter.Context) -> Message:
        topic = parts.topic if parts.select_topic is None else parts.select_topic(element)
        if not isinstance(topic, str) or not topic:
            raise GraphError(f"The topic selector of the Kafka sink returned {topic!r}, which is no topic's name.")
        value, key = value_of(element), key_of(element) if key_of is not None else None
        partition = _ANY_PARTITION
        if parts.partitioner is not None:
            partition = parts.partitioner(element, key, value, topic, partitions_of(topic))
        at_ms = parts.timestamp(element) if parts.timestamp is not None else context.timestamp()
        timestamp = at_ms if at_ms is not None and at_ms > 0 else _NO_TIMESTAMP
        headers = _pairs(parts.headers(element)) if parts.headers is not None else None
        return (topic, value, key, partition, None, None, timestamp, headers)

    return message


def _pairs(headers: Headers | None) -> list[tuple[str, bytes | str | None]]:
    if not headers:
        return []
    return list(headers.items() if isinstance(headers, Mapping) else headers)
