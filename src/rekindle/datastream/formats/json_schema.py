"""The type of the messages that a JSON schema describes: the part of JSON Schema that Flink knows."""

from __future__ import annotations

from typing import Any

import msgspec

from rekindle.common.typeinfo import TypeInformation, Types
from rekindle.errors import GraphError

_REFUSED = ("allOf", "anyOf", "not", "extends", "disallow")
_SIMPLE = {
    "boolean": Types.BOOLEAN(),
    "number": Types.BIG_DEC(),
    "integer": Types.BIG_DEC(),  # as in Flink: a JSON integer has no largest value
    "null": Types.PICKLED_BYTE_ARRAY(),
}
_FORMATS = {"date": Types.SQL_DATE(), "time": Types.SQL_TIME(), "date-time": Types.SQL_TIMESTAMP()}


def type_of_json_schema(json_schema: str) -> TypeInformation:
    """Return the type of the messages.

    >>> type_of_json_schema('{"type": "object", "properties": {"id": {"type": "integer"}, "on": {"type": "boolean"}}}')
    Row<id: BigDecimal, on: Boolean>
    """
    try:
        root = msgspec.json.decode(json_schema)
    except (msgspec.DecodeError, TypeError) as error:
        raise GraphError(f"The JSON schema is not JSON: {error}.") from None
    return _Schema(root).type_of(root, "<root>", ())


class _Schema:
    def __init__(self, root: Any) -> None:
        self._root = root

    def type_of(self, node: Any, path: str, followed: tuple[str, ...]) -> TypeInformation:
        """Return the type of a node; `followed` holds the references that led to it."""
        if not isinstance(node, dict):
            raise GraphError(f"The JSON schema has no type at {path}.")
        refused = next((keyword for keyword in _REFUSED if keyword in node), None)
        if refused is not None:
            raise GraphError(
                f"The JSON schema has '{refused}' at {path}, which is not supported: only one type or null."
            )
        if "$ref" in node and "type" not in node and "oneOf" not in node:
            return self._referenced(node["$ref"], path, followed)
        names = node.get("type", [])
        named = [(name, node) for name in ([names] if isinstance(names, str) else names)]
        types = [self._named(name, each, path, followed) for name, each in named if name != "null"]
        types += [self.type_of(each, f"{path}/oneOf", followed) for each in node.get("oneOf", ()) if not _is_null(each)]
        if not types and (names or "oneOf" in node):
            return _SIMPLE["null"]
        if len(set(types)) != 1:
            raise GraphError(f"The JSON schema needs one type, or one and null, at {path}; it has {types or 'none'}.")
        return types[0]

    def _named(self, name: str, node: Any, path: str, followed: tuple[str, ...]) -> TypeInformation:
        if name in _SIMPLE:
            return _SIMPLE[name]
        if name == "string":
            return _text(node, path)
        if name == "object":
            return self._object(node, path, followed)
        if name == "array":
            return self._array(node, path, followed)
        raise GraphError(f"The JSON schema has the unknown type '{name}' at {path}.")

    def _object(self, node: Any, path: str, followed: tuple[str, ...]) -> TypeInformation:
        if node.get("additionalProperties") is True:
            raise GraphError(f"The JSON schema allows additional properties at {path}: a row has no place for them.")
        properties = node.get("properties", {})
        types = [self.type_of(each, f"{path}/{name}", followed) for name, each in properties.items()]
        return Types.ROW_NAMED(list(properties), types)

    def _array(self, node: Any, path: str, followed: tuple[str, ...]) -> TypeInformation:
        items = node.get("items")
        if isinstance(items, dict):
            return Types.OBJECT_ARRAY(self.type_of(items, f"{path}/items", followed))
        if isinstance(items, list) and node.get("additionalItems") is not True:
            return Types.TUPLE([self.type_of(each, f"{path}/items", followed) for each in items])
        raise GraphError(f"The JSON schema needs 'items', and no additional ones, for the array at {path}.")

    def _referenced(self, reference: str, path: str, followed: tuple[str, ...]) -> TypeInformation:
        if reference in followed:
            raise GraphError(f"The JSON schema refers to itself at {path}: {reference}.")
        node = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            node = node.get(step) if isinstance(node, dict) else None
        if not reference.startswith("#") or node is None:
            raise GraphError(f"The JSON schema has no {reference}, which it refers to at {path}.")
        return self.type_of(node, reference, (*followed, reference))


def _is_null(node: Any) -> bool:
    return isinstance(node, dict) and node.get("type") == "null"


def _text(node: Any, path: str) -> TypeInformation:
    if "format" in node:
        return _FORMATS.get(node["format"], Types.STRING())
    encoding = node.get("contentEncoding", "")
    if encoding not in ("", "base64"):
        raise GraphError(f"The JSON schema has the unknown encoding '{encoding}' at {path}: base64 is known.")
    return Types.PRIMITIVE_ARRAY(Types.BYTE()) if encoding else Types.STRING()
