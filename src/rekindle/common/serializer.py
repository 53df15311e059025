"""`TypeSerializer`: the base of users' own serializers for state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import Any, ClassVar, Generic, TypeVar

__all__ = ["TypeSerializer", "VoidNamespaceSerializer"]

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes values to a stream and reads them back. Serializers of one class with equal fields are equal.

    A checkpoint holds the serializer's name and version beside the state, as Flink keeps a `TypeSerializerSnapshot`.
    Raise `version` when `serialize` writes another format, and read the older ones in `deserialize_version`:

    >>> class Celsius(TypeSerializer[float]):
    ...     version = 2
    ...     def serialize(self, element, stream):
    ...         stream.write(str(round(element * 100)).encode())
    ...     def deserialize(self, stream):
    ...         return int(stream.read()) / 100
    ...     def deserialize_version(self, stream, version):
    ...         return float(stream.read())  # version 1 wrote degrees
    >>> Celsius().can_read(1), Celsius().can_read(3)
    (True, False)
    """

    #: The version of what `serialize` writes.
    version: int = 1
    #: Former names of the class.
    former_names: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None:
        """Writes a value."""

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T:
        """Reads a value."""

    def deserialize_version(self, stream: BytesIO, version: int) -> T:
        """Reads a value that another version wrote; only versions for which `can_read` holds are asked for."""
        return self.deserialize(stream)

    def can_read(self, version: int) -> bool:
        """Whether state of this version can be read: its own, and older ones if it has a `deserialize_version`."""
        migrates = type(self).deserialize_version is not TypeSerializer.deserialize_version
        return version == self.version or (migrates and version < self.version)

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
