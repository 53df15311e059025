"""The pipeline: a topic of Kafka into a table of HBase, a row per record."""

from __future__ import annotations

from typing import Any, NamedTuple

from examples.kafka_to_hbase.traced import TracedConsumer, TracedSink
from rekindle.common import TypeInformation, Types
from rekindle.datastream import DataStream, StreamExecutionEnvironment
from rekindle.datastream.connectors.hbase import HBaseSink, Put
from rekindle.datastream.connectors.kafka import KafkaRecord, KafkaRecordDeserializationSchema

FAMILY = "f"
RECORD = Types.TUPLE([Types.LONG(), Types.LONG(), Types.PRIMITIVE_ARRAY(Types.BYTE())])


class Place(NamedTuple):
    """Where the pipeline reads and writes."""

    bootstrap_servers: str
    topic: str
    group: str
    thrift_servers: str
    table: str


class PlaceAndValue(KafkaRecordDeserializationSchema):
    """Turns a record into (partition, offset, value)."""

    def deserialize(self, record: KafkaRecord) -> tuple[int, int, bytes]:
        """Return the stream's record."""
        return record.partition, record.offset, record.value or b""

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the stream's records."""
        return RECORD


def row_of(partition: int, offset: int) -> bytes:
    """The row of a record: those of a partition are in the order of their offsets.

    >>> row_of(3, 17)
    b'03-0000000017'
    """
    return b"%02d-%010d" % (partition, offset)


def to_put(record: tuple[int, int, bytes]) -> Put:
    """The mutation of a record."""
    partition, offset, value = record
    return Put(row_of(partition, offset), {b"f:value": value})


def add_pipeline(env: StreamExecutionEnvironment, place: Place, *, keyed: bool, pause_s: float = 0.0) -> None:
    """Add source and sink to a job: in one chain, or `keyed`, with an exchange between them.

    `pause_s`: how long the sink waits at a barrier before it writes what is buffered.
    """
    properties: dict[str, Any] = {"bootstrap.servers": place.bootstrap_servers, "group.id": place.group}
    consumer = TracedConsumer(place.topic, PlaceAndValue(), properties)
    consumer.set_start_from_earliest()
    stream: DataStream = env.add_source(consumer, "Kafka").uid("kafka")
    if keyed:
        stream = stream.key_by(lambda record: record[1], Types.LONG())
    sink = (
        HBaseSink.builder()
        .set_thrift_servers(place.thrift_servers)
        .set_table(place.table)
        .set_converter(to_put)
        .set_buffer_flush_interval(0)  # only full buffers and barriers: what S2's sink does
        .build()
    )
    stream.sink_to(TracedSink(sink, pause_s)).name("HBase").uid("hbase")
