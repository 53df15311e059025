"""PyFlink's doors into its JVM, closed: there is no Java Flink here, and each call says so by its name."""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

from rekindle.errors import JavaOnlyError

__all__ = ["get_gateway", "get_j_env_configuration", "load_java_class"]


def get_gateway() -> NoReturn:
    """Refused: PyFlink's gateway to its JVM."""
    raise JavaOnlyError("pyflink.java_gateway.get_gateway()")


def get_j_env_configuration(j_env: Any) -> Any:
    """Return the configuration of an environment, from its `_j_stream_execution_environment`."""
    configuration = getattr(j_env, "configuration", None)
    if configuration is not None:
        return configuration
    raise JavaOnlyError("get_j_env_configuration()", "read and write StreamExecutionEnvironment.get_configuration()")


def load_java_class(class_name: str) -> NoReturn:
    """Refused: a Java class by its name."""
    raise JavaOnlyError(f"load_java_class({class_name!r})")


def __getattr__(name: str) -> Any:
    """The other functions of these modules: they can be imported, and refuse to be called."""
    if name not in _JAVA_FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(_refuse, name)


_JAVA_FUNCTIONS = frozenset(
    {
        "add_jars_to_context_class_loader",
        "create_url_class_loader",
        "from_j_duration",
        "get_field",
        "get_field_value",
        "import_flink_view",
        "invoke_method",
        "is_instance_of",
        "is_local_deployment",
        "launch_gateway",
        "to_j_duration",
        "to_j_explain_detail_arr",
        "to_jarray",
    }
)


def _refuse(name: str, *arguments: Any, **named: Any) -> NoReturn:
    raise JavaOnlyError(f"{name}()")
