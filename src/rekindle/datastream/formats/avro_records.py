"""`GenericRecordAvroTypeInfo`: the type of Avro's generic records: dicts, lists and plain values in Python."""

from __future__ import annotations

import io
from typing import Any

from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.formats.avro_schemas import AvroSchema, bare, fastavro_package
from rekindle.datastream.formats.fieldwise import Convert
from rekindle.datastream.formats.mismatch import shown
from rekindle.errors import TypeMismatchError

#: The errors that fastavro raises for values that are not of the schema.
UNFIT = (TypeError, ValueError, AttributeError, KeyError, OverflowError, IndexError)


class GenericRecordAvroTypeInfo(TypeInformation):
    """The type of records of an Avro schema. They travel in Avro's binary form, and are checked by the schema.

    >>> schema = AvroSchema('{"type": "record", "name": "Click", "fields": [{"name": "n", "type": "int"}]}')
    >>> GenericRecordAvroTypeInfo(schema)
    Avro<Click>
    """

    def __init__(self, schema: AvroSchema) -> None:
        if not isinstance(schema, AvroSchema):
            raise TypeMismatchError(f"GenericRecordAvroTypeInfo takes an AvroSchema, not {schema!r}.")
        self._schema_string = str(schema)

    def get_schema(self) -> AvroSchema:
        """Return the schema of the records."""
        return AvroSchema(self._schema_string)

    def python_type(self) -> Any:
        return bytes

    def to_wire(self) -> Convert:
        return record_writer(self._schema_string)

    def from_wire(self) -> Convert:
        return record_reader(self._schema_string)

    def fingerprint(self) -> str:
        package = fastavro_package()
        return f"Avro<{package.schema.to_parsing_canonical_form(bare(self._schema_string))}>"

    def __repr__(self) -> str:
        schema = bare(self._schema_string)
        return f"Avro<{schema.get('name', schema['type']) if isinstance(schema, dict) else schema}>"


def record_writer(schema_string: str) -> Convert:
    """Return a function from a record to its bytes in Avro's binary form."""
    write, schema = fastavro_package().schemaless_writer, bare(schema_string)

    def encode(record: Any) -> bytes | None:
        if record is None:
            return None
        stream = io.BytesIO()
        try:
            write(stream, schema, record)
        except UNFIT as error:
            raise TypeMismatchError(
                f"it is not of its Avro schema: {str(error).rstrip('.')}; the record is {shown(repr(record))}"
            ) from None
        return stream.getvalue()

    return encode


def record_reader(schema_string: str) -> Convert:
    """Return a function from bytes in Avro's binary form to the record."""
    read, schema = fastavro_package().schemaless_reader, bare(schema_string)
    return lambda data: None if data is None else read(io.BytesIO(data), schema, None)
