"""The keyed backend of a window operator: rows under (key, namespace), in the key group of the key."""

from __future__ import annotations

from typing import Any

from rekindle.datastream.windowing.operation import NAMESPACES_OPTION, NamespaceKind
from rekindle.graph.nodes import OperatorNode
from rekindle.runtime.key_hash import key_group
from rekindle.runtime.operators.windows.namespaces import row_key_type
from rekindle.runtime.state.backend import KeyedStateBackend, KeyedStateOptions
from rekindle.runtime.state.hashmap import HashMapKeyedBackend
from rekindle.serde import value_codec_for


def windowed_backend(node: OperatorNode, key_groups: range, options: KeyedStateOptions) -> KeyedStateBackend:
    """A backend for the rows of a window operator."""
    kind = NamespaceKind(node.options[NAMESPACES_OPTION])
    max_parallelism = node.max_parallelism

    def key_group_of(row_key: tuple[Any, Any]) -> int:
        return key_group(row_key[0], max_parallelism)

    return HashMapKeyedBackend(
        max_parallelism,
        key_groups,
        options,
        key_codec=value_codec_for(row_key_type(kind, node.key_type), allow_pickle=options.allow_pickle),
        key_group_of=key_group_of,
    )
