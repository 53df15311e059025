"""Refuses the Java objects that PyFlink's classes carry: `_j_…` attributes and `get_java_…` methods, by their name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from rekindle.errors import JavaOnlyError

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


def refuse_java_name(owner: object, name: str) -> NoReturn:
    """Raise the error for an attribute that an object does not have: a Java name gets a sentence of its own."""
    kind = type(owner).__name__
    if name.startswith(_JAVA_NAMES):
        raise JavaOnlyError(f"{kind}.{name}")
    raise AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=owner)
