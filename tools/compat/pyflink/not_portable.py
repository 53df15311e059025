"""The cases of PyFlink's tests that cannot run without its JVM, each with its reason."""

from __future__ import annotations

_HELPERS = "its plan has helper operators that PyFlink adds for its Java side, and ours has none"
#: By a part of the case's name.
_REASONS: dict[str, str] = {
    "TypeInfoTests.test_from_java_type": "it tests nothing but PyFlink's way from Java types to Python types",
    "StreamExecutionEnvironmentCompletenessTests": "it compares Python's methods with Java's",
    "test_run_async_function_in_thread_mode": "it expects that PyFlink's thread mode refuses what works here",
    "test_keyed_stream_union": _HELPERS,
    "test_generate_stream_graph_with_dependencies": _HELPERS,
    "test_logging_msg": "it expects the log file, and the levels in it, of PyFlink's Python worker",
    "CustomStateBackendTests": "it makes a Java state backend",
    "test_add_custom_source": "its source is a Java class of Flink's tests",
    "FileSystemTests.test_file_sink": "it reads back the bucket check interval, which has no effect here",
    "test_dynamic_kafka::": "a connector that Rekindle does not have",
}


def why_not_portable(case: str) -> str | None:
    """The reason why a case cannot run here; None: it can."""
    return next((reason for name, reason in _REASONS.items() if name in case), None)
