"""Namespaces: windows as plain data, under which state, timers and files know them; and the backend of such rows.

A row lies under (key, namespace), in the key group of the key.
"""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from typing import Any, Final, Protocol

from rekindle.common.serializer import TypeSerializer
from rekindle.common.typeinfo import TypeInformation, Types
from rekindle.datastream.operator_details import WindowDetails
from rekindle.datastream.windowing.operation import NamespaceKind
from rekindle.datastream.windowing.windows import CountWindow, GlobalWindow, TimeWindow, Window
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.key_hash import key_group
from rekindle.runtime.list_keys import key_codec_for
from rekindle.runtime.state.keyed_backends import KeyedOperatorShape

Namespace = Any

#: The namespace of the state that all windows of a key share.
SHARED: Final = None

_TYPES: Final[dict[NamespaceKind, TypeInformation]] = {
    NamespaceKind.TIME: Types.TUPLE([Types.LONG(), Types.LONG()]),
    NamespaceKind.COUNT: Types.LONG(),
    NamespaceKind.GLOBAL: Types.LONG(),
}


class Namespaces(Protocol):
    """Converts the windows of one assigner to namespaces and back."""

    def pack(self, window: Any, /) -> Namespace:
        """Return the window's namespace, which can be a key of a dict."""
        ...

    def unpack(self, namespace: Namespace, /) -> Window:
        """Return the window of a namespace."""
        ...


class _TimeNamespaces:
    """The namespace of a time window is (start, end)."""

    def pack(self, window: TimeWindow) -> tuple[int, int]:
        return window.start, window.end

    def unpack(self, namespace: tuple[int, int]) -> TimeWindow:
        return TimeWindow(*namespace)


class _CountNamespaces:
    """The namespace of a count window is its number."""

    def pack(self, window: CountWindow) -> int:
        return window.id

    def unpack(self, namespace: int) -> CountWindow:
        return CountWindow(namespace)


class _GlobalNamespaces:
    """The namespace of the global window is 0."""

    def pack(self, window: GlobalWindow) -> int:
        return 0

    def unpack(self, namespace: int) -> GlobalWindow:
        return GlobalWindow.get()


class _SerializedNamespaces:
    """The namespace of any other window is the bytes that its serializer writes."""

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
    """Return the conversion for the windows of an assigner with this serializer."""
    match kind:
        case NamespaceKind.TIME:
            return _TimeNamespaces()
        case NamespaceKind.COUNT:
            return _CountNamespaces()
        case NamespaceKind.GLOBAL:
            return _GlobalNamespaces()
        case NamespaceKind.CUSTOM:
            return _SerializedNamespaces(serializer)


def windowed_shape(node: OperatorNode, key_groups: range, allow_pickle: bool) -> KeyedOperatorShape:
    """Return the shape of a window operator's state."""
    kind = node.described_as(WindowDetails).namespaces
    max_parallelism = node.max_parallelism

    def key_group_of(row_key: tuple[Any, Any]) -> int:
        return key_group(row_key[0], max_parallelism)

    key_codec = key_codec_for(_row_key_type(kind, node.key_type), allow_pickle=allow_pickle)
    return KeyedOperatorShape(max_parallelism, key_groups, key_codec, key_group_of)


def _row_key_type(kind: NamespaceKind, key_type: TypeInformation | None) -> TypeInformation | None:
    """Return the type of (key, namespace); None if it is not known."""
    namespace_type = _TYPES.get(kind)
    if key_type is None or namespace_type is None:
        return None
    return Types.TUPLE([key_type, namespace_type])
