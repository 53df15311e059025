"""`TypeSerializer`: the base of users' own serializers for state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import Any, Generic, TypeVar

__all__ = ["TypeSerializer", "VoidNamespaceSerializer"]

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes values to a stream and reads them back. Serializers of one class with equal fields are equal."""

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None:
        """Writes a value."""

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T:
        """Reads a value."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class VoidNamespaceSerializer(TypeSerializer[Any]):
    """The serializer of the void namespace, of state without namespaces: it writes no bytes.

    >>> VoidNamespaceSerializer().deserialize(BytesIO())
    b''
    """

    def serialize(self, element: bytes, stream: BytesIO) -> None:
        """Writes nothing."""

    def deserialize(self, stream: BytesIO) -> bytes:
        """Reads nothing."""
        return b""
