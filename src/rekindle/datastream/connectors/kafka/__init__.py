"""Sources and sinks for Kafka, under PyFlink's names."""

from __future__ import annotations

from rekindle.datastream.connectors.base import DeliveryGuarantee
from rekindle.datastream.connectors.kafka.flink_kafka_consumer import FlinkKafkaConsumer, FlinkKafkaConsumerBase
from rekindle.datastream.connectors.kafka.flink_kafka_producer import FlinkKafkaProducer, Semantic
from rekindle.datastream.connectors.kafka.kafka_record import KafkaRecord, KafkaRecordDeserializationSchema
from rekindle.datastream.connectors.kafka.offset_commits import OffsetCommitMode
from rekindle.datastream.connectors.kafka.offsets_initializers import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from rekindle.datastream.connectors.kafka.partitions import KafkaTopicPartition
from rekindle.datastream.connectors.kafka.poison_records import PoisonRecordHandling
from rekindle.datastream.connectors.kafka.record_serializer import (
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)
from rekindle.datastream.connectors.kafka.sink import KafkaSink, KafkaSinkBuilder
from rekindle.datastream.connectors.kafka.source import KafkaSource
from rekindle.datastream.connectors.kafka.source_builder import KafkaSourceBuilder

__all__ = [
    "DeliveryGuarantee",
    "FlinkKafkaConsumer",
    "FlinkKafkaConsumerBase",
    "FlinkKafkaProducer",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecord",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "OffsetCommitMode",
    "PoisonRecordHandling",
    "Semantic",
]
