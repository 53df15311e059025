"""Sources and sinks for Kafka, under PyFlink's names."""

from __future__ import annotations

from rekindle.datastream.connectors.kafka.kafka_sink import KafkaSink, KafkaSinkBuilder
from rekindle.datastream.connectors.kafka.record_serializer import (
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)

__all__ = [
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaTopicSelector",
]
