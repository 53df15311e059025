"""Windows as plain data: what state, timers and files know them by."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from typing import Any, Final, Protocol

from rekindle.common.serializer import TypeSerializer
from rekindle.common.typeinfo import TypeInformation, Types
from rekindle.datastream.windowing.operation import NamespaceKind
from rekindle.datastream.windowing.windows import CountWindow, GlobalWindow, TimeWindow, Window

Namespace = Any

#: The namespace of what all windows of a key share.
SHARED: Final = None

_TYPES: Final[dict[NamespaceKind, TypeInformation]] = {
    NamespaceKind.TIME: Types.TUPLE([Types.LONG(), Types.LONG()]),
    NamespaceKind.COUNT: Types.LONG(),
    NamespaceKind.GLOBAL: Types.LONG(),
}


class Namespaces(Protocol):
    """Windows of one assigner to namespaces, and back."""

    def pack(self, window: Any, /) -> Namespace:
        """The window as a value that can be a key."""
        ...

    def unpack(self, namespace: Namespace, /) -> Window:
        """The window again."""
        ...


class _TimeNamespaces:
    """(start, end)"""

    def pack(self, window: TimeWindow) -> tuple[int, int]:
        return window.start, window.end

    def unpack(self, namespace: tuple[int, int]) -> TimeWindow:
        return TimeWindow(*namespace)


class _CountNamespaces:
    """The window's number."""

    def pack(self, window: CountWindow) -> int:
        return window.id

    def unpack(self, namespace: int) -> CountWindow:
        return CountWindow(namespace)


class _GlobalNamespaces:
    """0"""

    def pack(self, window: GlobalWindow) -> int:
        return 0

    def unpack(self, namespace: int) -> GlobalWindow:
        return GlobalWindow.get()


class _SerializedNamespaces:
    """What the user's serializer writes."""

    def __init__(self, serializer: TypeSerializer[Any]) -> None:
        self._serializer = serializer
        self.unpack = lru_cache(maxsize=1024)(self._unpack)

    def pack(self, window: Any) -> bytes:
        stream = BytesIO()
        self._serializer.serialize(window, stream)
        return stream.getvalue()

    def _unpack(self, namespace: bytes) -> Window:
        return self._serializer.deserialize(BytesIO(namespace))  # type: ignore[no-any-return]


def namespaces_of(kind: NamespaceKind, serializer: TypeSerializer[Any]) -> Namespaces:
    """How windows of an assigner with this serializer become namespaces."""
    match kind:
        case NamespaceKind.TIME:
            return _TimeNamespaces()
        case NamespaceKind.COUNT:
            return _CountNamespaces()
        case NamespaceKind.GLOBAL:
            return _GlobalNamespaces()
        case NamespaceKind.CUSTOM:
            return _SerializedNamespaces(serializer)


def row_key_type(kind: NamespaceKind, key_type: TypeInformation | None) -> TypeInformation | None:
    """The type of (key, namespace); None if it is not known."""
    namespace_type = _TYPES.get(kind)
    if key_type is None or namespace_type is None:
        return None
    return Types.TUPLE([key_type, namespace_type])
