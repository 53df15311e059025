"""Refuses the Java objects that PyFlink's classes carry: `_j_…` attributes and `get_java_…` methods, by their name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from rekindle.errors import JavaOnlyError
from rekindle.pyflink_names.missing_names import gone_member

_JAVA_NAMES = ("_j_", "get_java_", "_get_j_")


class RefusesJavaNames:
    """A class of PyFlink's API without a Java object below it.

    >>> from rekindle.common import Configuration
    >>> Configuration()._j_configuration
    Traceback (most recent call last):
    rekindle.errors.JavaOnlyError: Configuration._j_configuration is a Java object of PyFlink, and Rekindle has no \
Java Flink.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker sees that there is no such attribute

        def __getattr__(self, name: str) -> Any:
            refuse_java_name(self, name)


class JavaEnvironment:
    """In place of the Java environment below an environment: it has the configuration, and refuses all else by name.

    PyFlink programs reach the settings of their environment this way, with `Configuration(j_configuration=...)`.
    """

    def __init__(self, configuration: Any) -> None:
        self.configuration = configuration

    def getConfiguration(self) -> Any:
        """Return the configuration of the environment itself."""
        return self.configuration

    def __getattr__(self, name: str) -> NoReturn:
        raise JavaOnlyError(f"StreamExecutionEnvironment._j_stream_execution_environment.{name}")


def refuse_java_name(owner: object, name: str) -> NoReturn:
    """Raise the error for an attribute that an object does not have: a Java name gets a sentence of its own."""
    kind = type(owner).__name__
    if name.startswith(_JAVA_NAMES):
        raise JavaOnlyError(f"{kind}.{name}")
    sentence = gone_member(owner, name) or f"{kind!r} object has no attribute {name!r}"
    raise AttributeError(sentence, name=name, obj=owner)
