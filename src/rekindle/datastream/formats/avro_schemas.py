"""Schemas of Avro: parsed by fastavro, with and without their logical types."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from rekindle.errors import ConfigurationError, ConnectorError, GraphError


def fastavro_package() -> ModuleType:
    """Return the package fastavro, which is no dependency of everyone."""
    try:
        import fastavro
    except ImportError:
        raise ConfigurationError("Avro needs the package fastavro: pip install 'rekindle[avro]'.") from None
    package: ModuleType = fastavro
    return package


def parsed(schema_string: str) -> Any:
    """Return a schema whose names are complete, with its logical types.

    >>> parsed('{"type": "enum", "name": "Suit", "namespace": "cards", "symbols": ["HEARTS"]}')["name"]
    'cards.Suit'
    """
    return _parse(_json(schema_string), {})


def bare(schema_string: str, names: dict[str, Any] | None = None) -> Any:
    """Return a schema without logical types, for fastavro's reader and writer; `names` holds schemas it refers to.

    >>> bare('{"type": "int", "logicalType": "date"}')
    {'type': 'int'}
    """
    return _parse(_without_logical_types(_json(schema_string)), {} if names is None else names)


def _json(schema_string: str) -> Any:
    try:
        return msgspec.json.decode(schema_string)
    except (msgspec.DecodeError, TypeError) as error:
        raise GraphError(f"The Avro schema is not JSON: {str(error).rstrip('.')}.") from None


def _parse(schema: Any, names: dict[str, Any]) -> Any:
    package = fastavro_package()
    try:
        return package.parse_schema(schema, named_schemas=names)
    except Exception as error:  # fastavro raises errors of many kinds for schemas that are none
        raise GraphError(f"The Avro schema is not valid: {type(error).__name__}: {str(error).rstrip('.')}.") from None


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _without_logical_types(value) if name in ("type", "items", "values", "fields") else value
        for name, value in schema.items()
        if name != "logicalType"
    }


class AvroSchema:
    """A schema of Avro.

    >>> AvroSchema.parse_string('{"type": "array", "items": "string"}')
    AvroSchema({"type": "array", "items": "string"})
    """

    def __init__(self, schema_string: str) -> None:
        parsed(schema_string)  # what is no schema is refused here
        self._schema_string = schema_string

    def __str__(self) -> str:
        return self._schema_string

    def __repr__(self) -> str:
        return f"AvroSchema({self._schema_string})"

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """Return the schema of a JSON text."""
        return AvroSchema(json_schema)

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """Return the schema in a file."""
        try:
            return AvroSchema(Path(file_path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConnectorError(f"The Avro schema {file_path} cannot be read: {error.strerror}.") from None
