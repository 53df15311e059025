"""Sources and sinks for Kafka, under PyFlink's names."""

from __future__ import annotations

from rekindle.datastream.connectors.kafka.flink_kafka_producer import FlinkKafkaProducer, Semantic
from rekindle.datastream.connectors.kafka.kafka_sink import KafkaSink, KafkaSinkBuilder
from rekindle.datastream.connectors.kafka.record_serializer import (
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)

__all__ = [
    "FlinkKafkaProducer",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaTopicSelector",
    "Semantic",
]
