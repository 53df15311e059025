"""Puts stand-ins in the places where PyFlink's tests import the parts of PyFlink that belong to its JVM."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from py4j import java_gateway

from rekindle import config, pyflink_names
from rekindle.common import Configuration, typeinfo
from rekindle.common.serialization import DeserializationSchema, SerializationSchema
from rekindle.common.watermark_strategy import WatermarkStrategy
from rekindle.datastream import StreamExecutionEnvironment, state_backend
from rekindle.datastream.connectors.file_system import FileSource
from rekindle.datastream.connectors.number_seq import NumberSequenceSource
from rekindle.datastream.data_stream import DataStream
from rekindle.datastream.streams.sinks import DataStreamSink, SinkableStream
from tools.compat.pyflink import java_fields, test_cases
from tools.compat.pyflink.java_avro import JavaAvroSchema
from tools.compat.pyflink.java_stand_ins import (
    Gateway,
    JavaConfiguration,
    JavaEnvironment,
    JavaSchema,
    JavaStream,
    NotPortableError,
)
from tools.compat.pyflink.result_sink import DataStreamTestSinkFunction


class _Refusing(ModuleType):
    """A module of which every other name can be imported and refuses to be used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        class Refused:
            def __init__(self, *arguments: Any, **named: Any) -> None:
                raise NotPortableError(f"it needs PyFlink's {name}")

        Refused.__name__ = name
        return Refused


def install() -> None:
    """Install PyFlink's names and the stand-ins."""
    pyflink_names.install()
    _place("pyflink.java_gateway", get_gateway=Gateway)
    _place(
        "pyflink.util.java_utils",
        get_j_env_configuration=lambda env: env.getConfiguration(),
        is_instance_of=java_fields.is_instance_of,
        get_field_value=java_fields.get_field_value,
        load_java_class=java_fields.JavaClass,
    )
    _place("pyflink.util.api_stability_decorators")
    _place("pyflink.pyflink_gateway_server", on_windows=lambda: False)
    _place("pyflink.find_flink_home")
    _place("pyflink.testing", __path__=[])
    _place(
        "pyflink.testing.test_case_utils",
        **{name: value for name, value in vars(test_cases).items() if not name.startswith("_")},
    )
    util = _place("pyflink.datastream.tests.test_util", DataStreamTestSinkFunction=DataStreamTestSinkFunction)
    watermarks = import_module("rekindle.common.watermark_strategy")

    class SecondColumnTimestampAssigner(watermarks.TimestampAssigner):  # type: ignore[misc, name-defined]
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value[1])

    util.__dict__["SecondColumnTimestampAssigner"] = SecondColumnTimestampAssigner
    for package in ("datastream", "datastream.connectors", "datastream.formats", "common"):
        _place(f"pyflink.{package}.tests", __path__=[])
    _place_avro()
    _add_java_sides()
    _fill_gaps()
    # PyFlink's tests expect numbers as PyFlink wraps them.
    object.__setattr__(config.OUT_OF_RANGE, "default", "wrap")


def _place_avro() -> None:
    """The package `avro`, with which the formats' tests read files back, over fastavro."""
    import fastavro

    _place("avro", __path__=[])
    _place("avro.io", DatumReader=lambda *schemas: None)
    _place("avro.datafile", DataFileReader=lambda file, reader: fastavro.reader(file))


def _place(name: str, **names: Any) -> ModuleType:
    module = _Refusing(name)
    module.__dict__.update(names)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)
    return module


def _add_java_sides() -> None:
    """The Java object that an object of PyFlink's API carries."""
    StreamExecutionEnvironment._j_stream_execution_environment = property(JavaEnvironment)  # type: ignore
    DataStream._j_data_stream = property(JavaStream)  # type: ignore[attr-defined]
    SerializationSchema._j_serialization_schema = property(JavaSchema)  # type: ignore[attr-defined]
    DeserializationSchema._j_deserialization_schema = property(JavaSchema)  # type: ignore[attr-defined]
    typeinfo.TypeInformation.get_java_type_info = lambda self: self  # type: ignore[attr-defined]
    WatermarkStrategy._j_watermark_strategy = property(java_fields.JavaStrategyView)  # type: ignore[attr-defined]
    NumberSequenceSource.get_java_function = java_fields.sequence_view  # type: ignore[attr-defined]
    FileSource.get_java_function = java_fields.file_source_view  # type: ignore[attr-defined]
    java_gateway.java_import = lambda jvm, name: None
    add_sink = SinkableStream.add_sink

    def add_typed_sink(self: SinkableStream, sink_func: Any) -> DataStreamSink:
        if isinstance(sink_func, DataStreamTestSinkFunction):
            sink_func.type_info = self._type_info
        return add_sink(self, sink_func)

    SinkableStream.add_sink = add_typed_sink  # type: ignore[method-assign]
    make = Configuration.__init__

    def make_over_java(
        self: Configuration, other: Configuration | None = None, j_configuration: JavaConfiguration | None = None
    ) -> None:
        make(self, other)
        if j_configuration is not None:
            self._values = j_configuration.configuration._values

    Configuration.__init__ = make_over_java  # type: ignore[assignment]


def _fill_gaps() -> None:
    """Modules and names that test files import at their head, though most of their tests do not need them."""
    for module, name in ((typeinfo, "_from_java_type"), (state_backend, "_from_j_state_backend")):
        if not hasattr(module, name):
            setattr(module, name, _no_java_object)
    types = import_module("pyflink.table.types") if find_spec("rekindle.table") else None
    if types is not None and not hasattr(types, "_to_java_data_type"):
        types.__dict__["_to_java_data_type"] = _no_java_object
    avro = import_module("rekindle.datastream.formats.avro")
    if hasattr(avro, "AvroSchema"):
        avro.AvroSchema._j_schema = property(JavaAvroSchema.of)
    for name in _MAY_BE_ABSENT:
        try:
            import_module(name)
        except ModuleNotFoundError:
            _place(name, __path__=[])


_MAY_BE_ABSENT = (
    *("pyflink.table", "pyflink.table.types", "pyflink.table.udf", "pyflink.table.expressions"),
    *("pyflink.datastream.formats.orc", "pyflink.datastream.formats.parquet", "pyflink.datastream.utils"),
    *(
        f"pyflink.datastream.connectors.{name}"
        for name in ("pulsar", "elasticsearch", "dynamic_kafka", "rabbitmq", "kinesis", "cassandra", "hybrid_source")
    ),
)


def _no_java_object(java_object: Any) -> Any:
    raise NotPortableError("it makes a Python object of a Java one")


def over_java_stream(java_stream: JavaStream) -> DataStream:
    """PyFlink's constructor of a stream over a Java one."""
    return java_stream.stream


def adapt(module: ModuleType) -> None:
    """Give a loaded test file the constructors over Java objects."""
    if getattr(module, "DataStream", None) is DataStream:
        module.__dict__["DataStream"] = over_java_stream
    if getattr(module, "WatermarkStrategy", None) is WatermarkStrategy:
        module.__dict__["WatermarkStrategy"] = _OverJavaStrategy
    memory = getattr(module, "MemorySize", None)
    if memory is not None:
        module.__dict__["MemorySize"] = _memory_size(memory)


class _OverJavaStrategy(WatermarkStrategy):
    """PyFlink's constructor of a strategy over a Java one; the stand-in of the Java one is ours already."""

    def __new__(cls, java_strategy: WatermarkStrategy) -> Any:
        return java_strategy


def _memory_size(memory: Any) -> Any:
    class TestMemorySize(memory):  # type: ignore[misc,valid-type]
        def __new__(cls, j_memory_size: Any = None, bytes_size: int | None = None) -> Any:
            return j_memory_size if j_memory_size is not None else memory(bytes_size=bytes_size)

    return TestMemorySize
