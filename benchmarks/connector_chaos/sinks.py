"""The job's sinks: each gets the steps (key, how many records of the key, their sum)."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from rekindle.common import Types
from rekindle.datastream import DataStream
from rekindle.datastream.connectors.base import DeliveryGuarantee

Step = tuple[int, int, int]
#: Every so many steps of a key the row of the step before is deleted from HBase again.
DELETE_EVERY = 3


def add_sink(steps: DataStream, arguments: dict[str, Any], name: str) -> None:
    """Let the job write where the arguments of an `Output` say."""
    made = {"kafka": _kafka, "hbase": _hbase, "postgres": _postgres}[arguments["kind"]](arguments, name)
    steps.sink_to(made).uid(f"steps-{arguments['kind']}")


def _kafka(arguments: dict[str, Any], name: str) -> Any:
    from rekindle.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink

    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(arguments["topic"])
        .set_key_serialization_schema(_key_of)
        .set_value_serialization_schema(msgspec.json.encode)
        .set_partitioner(lambda step, key, value, topic, partitions: step[0] % len(partitions))
        .build()
    )
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(arguments["bootstrap"])
        .set_record_serializer(serializer)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(f"chaos-{name}")
        .set_property("transaction.timeout.ms", "120000")
        .build()
    )


def _key_of(step: Step) -> bytes:
    return str(step[0]).encode()


def _postgres(arguments: dict[str, Any], name: str) -> Any:
    from benchmarks.connector_chaos.postgres_output import PASSWORD
    from rekindle.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink

    database = (
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        .with_url(arguments["url"])
        .with_user_name(arguments["user"])
        .with_password(os.environ[PASSWORD])
        .build()
    )
    return JdbcSink.exactly_once_sink(
        f'INSERT INTO "{arguments["table"]}" (key, number, total) VALUES (?, ?, ?)',
        Types.ROW([Types.LONG(), Types.LONG(), Types.LONG()]),
        database,
    )


def _hbase(arguments: dict[str, Any], name: str) -> Any:
    from rekindle.datastream.connectors.hbase import HBaseSink

    builder = HBaseSink.builder().set_thrift_servers(arguments["thrift"]).set_table(arguments["table"])
    return builder.set_converter(_mutations).build()


def _mutations(step: Step) -> list[Any]:
    """Put the key's latest step and the step itself; delete the step before, every few steps."""
    from rekindle.datastream.connectors.hbase import Delete, Put

    key, number, total = step
    cells = {b"f:number": str(number).encode(), b"f:total": str(total).encode()}
    mutations: list[Any] = [Put(b"latest-%04d" % key, cells), Put(_row(key, number), cells)]
    if number % DELETE_EVERY == 0:
        mutations.append(Delete(_row(key, number - 1)))
    return mutations


def _row(key: int, number: int) -> bytes:
    return b"step-%04d-%07d" % (key, number)
