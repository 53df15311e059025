"""The cases of PyFlink's tests that cannot run without its JVM, each with its reason."""

from __future__ import annotations

_FIELDS = "it reads fields of Java objects"
_SERVICE = "a connector that Rekindle does not have, and it reads fields of Java objects"
#: By a part of the case's name.
_REASONS: dict[str, str] = {
    "TypeInfoTests.test_from_java_type": "it makes Java types and Python types of them again",
    "test_watermark_strategy::": _FIELDS,
    "StreamExecutionEnvironmentCompletenessTests": "it compares Python's methods with Java's",
    "test_run_async_function_in_thread_mode": "it expects that PyFlink's thread mode refuses what works here",
    "test_keyed_stream_union": "it looks for a helper operator that PyFlink adds for its Java side",
    "test_generate_stream_graph_with_dependencies": "it counts helper operators that PyFlink adds for its Java side",
    "test_logging_msg": "it reads the log file of PyFlink's Python worker in Flink's log folder",
    "EmbeddedRocksDBStateBackendTests.test_get_set_options": "it names a Java options factory",
    "CustomStateBackendTests": "it makes a Java state backend",
    "test_add_custom_source": "its source is a Java class of Flink's tests",
    "FileSystemTests.test_file_source": _FIELDS,
    "FileSystemTests.test_file_sink": _FIELDS,
    "test_seq_source": _FIELDS,
    "ParquetColumnarRowInputFormat": "its files are written by Java classes",
    "FileSourceAvroParquetReadersTests": "its files are written by Java classes",
    "test_kafka::": _FIELDS,
    "test_jdbc::": _FIELDS,
    "test_dynamic_kafka::": _SERVICE,
    "test_elasticsearch::": _SERVICE,
    "test_kinesis::": _SERVICE,
    "test_pulsar::": _SERVICE,
    "test_rabbitmq::": _SERVICE,
    "test_cassandra::": _SERVICE,
}


def why_not_portable(case: str) -> str | None:
    """The reason why a case cannot run here; None: it can."""
    return next((reason for name, reason in _REASONS.items() if name in case), None)
