"""A whole Kafka record: key, value, headers, and where it came from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import msgspec

from rekindle.common.typeinfo import TypeInformation


class KafkaRecord(msgspec.Struct, frozen=True):
    """A record as it is in Kafka, with its bytes.

    >>> KafkaRecord(b"to be", topic="words", partition=0, offset=17).value
    b'to be'
    """

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    topic: str = ""
    partition: int = 0
    offset: int = 0
    #: Milliseconds since 1970: when the producer made the record, or the broker appended it, as the topic is set.
    timestamp: int | None = None


class KafkaRecordDeserializationSchema(ABC):
    """Turns whole Kafka records into the stream's records. Extend it, or give `set_deserializer` a function.

    >>> class KeyAndValue(KafkaRecordDeserializationSchema):
    ...     def deserialize(self, record):
    ...         return record.key.decode(), record.value.decode()
    >>> KeyAndValue().deserialize(KafkaRecord(b"1", key=b"a"))
    ('a', '1')
    """

    def open(self, context: Any = None) -> None:
        """Prepare for the first record: called once in each subtask, before `deserialize`."""

    @abstractmethod
    def deserialize(self, record: KafkaRecord) -> Any:
        """Return the stream's record, or None to skip this one."""

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the stream's records; None when it is not known."""
        return None


def record_of(message: Any) -> KafkaRecord:
    """Return the record of a client's message."""
    kind, timestamp = message.timestamp()
    return KafkaRecord(
        message.value(),
        message.key(),
        tuple(message.headers() or ()),
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp if kind else None,
    )
