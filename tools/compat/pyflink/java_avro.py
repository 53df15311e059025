"""Stand-ins for the Java classes with which the formats' tests write Avro and Parquet files to read."""

from __future__ import annotations

import json
from typing import Any

import fastavro


class JavaAvroSchema:
    """An Avro `Schema` of Java over its JSON."""

    def __init__(self, described: Any) -> None:
        self.described = described

    @classmethod
    def of(cls, schema: Any) -> JavaAvroSchema:
        """The Java side of an `AvroSchema`."""
        return cls(json.loads(str(schema)))

    def getField(self, name: str) -> JavaAvroField:
        """A field of a record."""
        return JavaAvroField(next(field for field in self.described["fields"] if field["name"] == name))

    def getElementType(self) -> str:
        """The type of an array's elements, as `AvroSchema` takes it."""
        return json.dumps(self.described["items"])


class JavaAvroField:
    """A field of a schema."""

    def __init__(self, described: Any) -> None:
        self._described = described

    def schema(self) -> JavaAvroSchema:
        """The field's type."""
        return JavaAvroSchema(self._described["type"])


class JavaAvroRecord(dict[str, Any]):
    """A `GenericData.Record`."""

    def __init__(self, schema: JavaAvroSchema) -> None:
        super().__init__()
        self.schema = schema

    def put(self, name: str, value: Any) -> None:
        """Set a field."""
        self[name] = value


class JavaMap(dict[str, Any]):
    """A `java.util.HashMap`."""

    def put(self, key: str, value: Any) -> None:
        """Set an entry."""
        self[key] = value


class JavaAvroFile:
    """A `DataFileWriter`."""

    def __init__(self, datum_writer: Any) -> None:
        self._records: list[Any] = []
        self._schema: Any = None
        self._path = ""

    def create(self, schema: JavaAvroSchema, path: str) -> None:
        """Begin a file."""
        self._schema, self._path = schema.described, path

    def append(self, record: Any) -> None:
        """Add a record."""
        self._records.append(_plain(record))

    def close(self) -> None:
        """Write the file."""
        with open(self._path, "wb") as file:
            fastavro.writer(file, fastavro.parse_schema(self._schema), self._records)


def _plain(value: Any) -> Any:
    """Dicts and lists of Python, as fastavro takes them."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


#: Java classes by their full name, and by the short one under which the tests import them.
AVRO_CLASSES: dict[str, Any] = {
    "GenericData.Record": JavaAvroRecord,
    "GenericData.EnumSymbol": lambda schema, symbol: symbol,
    "java.io.File": str,
    "java.util.HashMap": JavaMap,
    "org.apache.flink.avro.shaded.org.apache.avro.generic.GenericDatumWriter": lambda: None,
    "org.apache.flink.avro.shaded.org.apache.avro.file.DataFileWriter": JavaAvroFile,
}
