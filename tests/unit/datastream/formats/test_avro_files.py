"""Files of Avro records, in Avro's own form and in Parquet, under PyFlink's names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cloudpickle
import fastavro
import pyarrow.parquet as pq
import pytest

from rekindle.common import WatermarkStrategy
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource
from rekindle.datastream.connectors.files.splits import FileSplit
from rekindle.datastream.formats.avro import AvroBulkWriters, AvroInputFormat, AvroSchema, GenericRecordAvroTypeInfo
from rekindle.datastream.formats.avro_files import AvroFileFormat
from rekindle.datastream.formats.parquet import AvroParquetReaders, AvroParquetWriters
from rekindle.errors import ConnectorError, RekindleError, SerializationError
from rekindle.graph.build import build_plan
from rekindle.testing import InProcessJob, assert_survives

SCHEMA = AvroSchema.parse_string("""{"type": "record", "name": "test", "fields": [
    {"name": "null", "type": "null"},
    {"name": "boolean", "type": "boolean"},
    {"name": "long", "type": "long"},
    {"name": "float", "type": "float"},
    {"name": "string", "type": ["null", "string"]},
    {"name": "suit", "type": {"type": "enum", "name": "Suit", "symbols": ["SPADES", "HEARTS"]}},
    {"name": "union", "type": ["int", "double", "null"]},
    {"name": "array", "type": {"type": "array", "items": {"type": "record", "name": "item", "fields": [
        {"name": "int", "type": "int"}, {"name": "double", "type": "double"}]}}},
    {"name": "map", "type": {"type": "map", "values": "long"}}
]}""")


def record(n: int) -> dict[str, Any]:
    return {
        "null": None,
        "boolean": n % 2 == 0,
        "long": n,
        "float": n / 2,
        "string": f"s{n}" if n % 3 else None,
        "suit": ["SPADES", "HEARTS"][n % 2],
        "union": [n, n + 0.5, None][n % 3],
        "array": [{"int": n, "double": n / 4}] * (n % 3),
        "map": {"a": n, "b": -n},
    }


RECORDS = [record(n) for n in range(40)]


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)


def write(directory: Path, factory: Any) -> None:
    env = environment()
    sink = FileSink.for_bulk_format(str(directory), factory)
    stream = env.from_collection(RECORDS).map(lambda each: each, output_type=GenericRecordAvroTypeInfo(SCHEMA))
    stream.rebalance().sink_to(sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build())
    InProcessJob(build_plan(env._program("avro"))).run()


def test_avro_files_are_written_and_read_over_an_exchange_of_typed_records(tmp_path: Path) -> None:
    write(tmp_path, AvroBulkWriters.for_generic_record(SCHEMA))
    (file,) = tmp_path.iterdir()
    with file.open("rb") as opened:
        assert list(fastavro.reader(opened)) == RECORDS
    read = InProcessJob.of(environment().create_input(AvroInputFormat(str(tmp_path), SCHEMA))).run()
    assert read == RECORDS


def test_avro_records_in_parquet_files_come_back_as_they_were(tmp_path: Path) -> None:
    write(tmp_path, AvroParquetWriters.for_generic_record(SCHEMA))
    (file,) = tmp_path.iterdir()
    assert pq.read_schema(file).field("union").type.num_fields == 2
    source = FileSource.for_record_stream_format(AvroParquetReaders.for_generic_record(SCHEMA), str(tmp_path)).build()
    stream = environment().from_source(source, WatermarkStrategy.no_watermarks(), "parquet")
    assert InProcessJob.of(stream).run() == RECORDS


def avro_file(path: Path) -> int:
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(json.loads(str(SCHEMA))), RECORDS, sync_interval=200)
    return path.stat().st_size


def test_every_record_is_read_once_however_the_file_is_cut_and_from_every_position(tmp_path: Path) -> None:
    path = tmp_path / "many.avro"
    size = avro_file(path)
    file_format = AvroFileFormat(GenericRecordAvroTypeInfo(SCHEMA))
    for cut in range(0, size, 37):
        found = []
        for begin, end in ((0, cut), (cut, size)):
            split = FileSplit(str(path), 0, size, begin, end)
            first = file_format.open(split)
            begun = first.read(3)
            rest = file_format.open(split.at(first.offset))
            found += begun + [each for records in iter(lambda: rest.read(7), []) for each in records]  # noqa: B023
            first.close()
            rest.close()
        assert found == RECORDS


def test_a_job_that_reads_avro_survives(tmp_path: Path) -> None:
    for n in range(3):
        avro_file(tmp_path / f"{n}.avro")

    def program(env: StreamExecutionEnvironment) -> Any:
        return env.create_input(AvroInputFormat(str(tmp_path), SCHEMA)).map(lambda each: each["long"])

    assert sorted(assert_survives(program, records_per_epoch=9, cuts=[2])) == sorted(3 * list(range(40)))


def test_a_newer_schema_gives_defaults(tmp_path: Path) -> None:
    avro_file(tmp_path / "old.avro")
    newer = AvroSchema.parse_string("""{"type": "record", "name": "test", "fields": [
        {"name": "long", "type": "long"}, {"name": "page", "type": "string", "default": "/"}]}""")
    read = InProcessJob.of(environment().create_input(AvroInputFormat(str(tmp_path), newer))).run()
    assert read[7] == {"long": 7, "page": "/"}


def test_the_type_is_its_schema() -> None:
    again = GenericRecordAvroTypeInfo(AvroSchema.parse_string(str(SCHEMA).replace("\n", " ")))
    assert cloudpickle.loads(cloudpickle.dumps(again)) == GenericRecordAvroTypeInfo(SCHEMA)
    wire = again.to_wire()(RECORDS[7])
    assert again.from_wire()(wire) == RECORDS[7]


def test_what_is_not_of_the_schema_is_named(tmp_path: Path) -> None:
    wrong = {**RECORDS[0], "long": "seven"}
    for factory in (AvroBulkWriters.for_generic_record(SCHEMA), AvroParquetWriters.for_generic_record(SCHEMA)):
        with (tmp_path / "out").open("wb") as file, pytest.raises(SerializationError, match="not of its Avro schema"):
            factory.create(file).add_elements([RECORDS[1], wrong])
    with pytest.raises(RekindleError, match="not of its Avro schema"):
        GenericRecordAvroTypeInfo(SCHEMA).to_wire()(wrong)
    (tmp_path / "no.avro").write_bytes(b"no Avro")
    with pytest.raises(ConnectorError, match=r"no\.avro is damaged, or no Avro file"):
        AvroFileFormat(GenericRecordAvroTypeInfo(SCHEMA)).open(FileSplit(str(tmp_path / "no.avro"), 0, 7, 0, 7))
