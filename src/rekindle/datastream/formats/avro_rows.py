"""Avro's values to rows and back, in the types that Flink gives them.

fastavro reads and writes without logical types. Their values (dates, times, decimals) are converted here, by the schema
of the reader: so they are right also when the writer's schema does not name them.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from operator import itemgetter
from typing import Any, NamedTuple

from rekindle.common.typeinfo import RowTypeInfo, TypeInformation, Types
from rekindle.common.types import Row, make_row
from rekindle.datastream.formats.checked_values import checked
from rekindle.datastream.formats.fieldwise import Convert, each_element, each_entry, values_reader
from rekindle.datastream.formats.mismatch import Mismatch, must_be
from rekindle.errors import GraphError

_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_ORDINAL = _EPOCH.toordinal()
_MIDNIGHT = dt.datetime.min


class AvroForm(NamedTuple):
    """A type with the functions from and to fastavro's values; None is never given to them."""

    type_info: TypeInformation
    read: Convert | None
    write: Convert
    nullable: bool = False


def avro_form(schema: Any, names: dict[str, Any] | None = None, inside: tuple[str, ...] = ()) -> AvroForm:
    """Return how values of a schema, as fastavro has parsed it, are read and written.

    >>> avro_form({"type": "array", "items": {"type": "int", "logicalType": "date"}}).type_info
    ObjectArray<Date>
    """
    names = {} if names is None else names
    if isinstance(schema, list):
        return _union(schema, names, inside)
    if isinstance(schema, str):
        return _LEAVES[schema] if schema in _LEAVES else _named(schema, names, inside)
    kind = schema["type"]
    if "name" in schema:
        names[schema["name"]] = schema
    match kind:
        case "record" | "error":
            return _record(schema, names, (*inside, schema["name"]))
        case "enum":
            return AvroForm(Types.STRING(), None, _symbol(schema))
        case "fixed":
            return _decimal(schema) if schema.get("logicalType") == "decimal" else _fixed(schema)
        case "array":
            return _array(avro_form(schema["items"], names, inside))
        case "map":
            return _map(avro_form(schema["values"], names, inside))
        case "bytes" if schema.get("logicalType") == "decimal":
            return _decimal(schema)
    logical = _LOGICAL.get((kind, schema.get("logicalType"))) if isinstance(kind, str) else None
    return logical or avro_form(kind, names, inside)


def _named(name: str, names: dict[str, Any], inside: tuple[str, ...]) -> AvroForm:
    if name in inside:
        raise GraphError(f"The Avro schema's record {name} contains itself, so that it is no row of a fixed type.")
    return avro_form(names[name], names, inside)


def _union(branches: list[Any], names: dict[str, Any], inside: tuple[str, ...]) -> AvroForm:
    forms = [avro_form(branch, names, inside) for branch in branches if branch != "null"]
    if len(forms) == 1:
        return forms[0]._replace(nullable=len(branches) > 1)
    return AvroForm(Types.PICKLED_BYTE_ARRAY(), None, _plain, "null" in branches)


def _record(schema: Any, names: dict[str, Any], inside: tuple[str, ...]) -> AvroForm:
    forms = {field["name"]: avro_form(field["type"], names, inside) for field in schema["fields"]}
    row_type = Types.ROW_NAMED(list(forms), [form.type_info for form in forms.values()])
    return AvroForm(row_type, _row_reader(forms), _row_writer(row_type, forms))


def _row_reader(forms: dict[str, AvroForm]) -> Convert:
    names = list(forms)
    pick = itemgetter(*names) if len(names) > 1 else lambda record: [record[name] for name in names]
    needed = [(index, form.read) for index, form in enumerate(forms.values()) if form.read is not None]

    def read(record: dict[str, Any]) -> Row:
        values = list(pick(record))
        for index, convert in needed:
            if values[index] is not None:
                values[index] = convert(values[index])
        return make_row(names, values)

    return read


def _row_writer(row_type: RowTypeInfo, forms: dict[str, AvroForm]) -> Convert:
    _, _, values_of = values_reader(row_type)
    fields = [(name, form.write, form.nullable) for name, form in forms.items()]

    def write(record: Any) -> dict[str, Any]:
        written = {}
        for (name, convert, nullable), value in zip(fields, values_of(record), strict=True):
            try:
                if value is None and not nullable:
                    raise Mismatch("must not be None: the schema does not allow null")
                written[name] = None if value is None else convert(value)
            except Mismatch as mismatch:
                raise mismatch.inside(name) from None
        return written

    return write


def _array(element: AvroForm) -> AvroForm:
    type_info = Types.OBJECT_ARRAY(element.type_info)
    write = each_element(element.write)

    def write_array(values: Any) -> list[Any]:
        if not isinstance(values, list | tuple):
            raise must_be(repr(type_info), values)
        return write(values)

    return AvroForm(type_info, None if element.read is None else each_element(element.read), write_array)


def _map(value: AvroForm) -> AvroForm:
    type_info = Types.MAP(Types.STRING(), value.type_info)
    write = each_entry(checked("String"), value.write)

    def write_map(entries: Any) -> dict[str, Any]:
        if not isinstance(entries, dict):
            raise must_be(repr(type_info), entries)
        return write(entries)

    return AvroForm(type_info, None if value.read is None else each_entry(str, value.read), write_map)


def _symbol(schema: Any) -> Convert:
    symbols = frozenset(schema["symbols"])

    def check(value: Any) -> Any:
        if value not in symbols:
            raise must_be(f"one of {', '.join(schema['symbols'])}", value)
        return value

    return check


def _fixed(schema: Any) -> AvroForm:
    size, check = schema["size"], checked("Bytes")

    def write(value: Any) -> bytes:
        if len(check(value)) != size:
            raise must_be(f"{size} bytes", value)
        return bytes(value)

    return AvroForm(Types.PRIMITIVE_ARRAY(Types.BYTE()), None, write)


def _decimal(schema: Any) -> AvroForm:
    precision, scale, size = schema["precision"], schema.get("scale", 0), schema.get("size")
    check, name = checked("BigDecimal"), f"Decimal({precision}, {scale})"

    def read(value: bytes) -> Decimal:
        return Decimal(f"{int.from_bytes(value, 'big', signed=True)}E{-scale}")  # from text, because that is exact

    def write(value: Any) -> bytes:
        sign, digits, exponent = check(value).as_tuple()
        unscaled, rest = divmod(
            int("".join(map(str, digits))) * 10 ** max(scale + exponent, 0), 10 ** max(-scale - exponent, 0)
        )
        if rest or len(str(unscaled)) > precision:
            raise must_be(name, value)
        number = -unscaled if sign else unscaled
        # The shortest two's complement, as Java's BigInteger has it.
        length = (number if number >= 0 else ~number).bit_length() // 8 + 1
        return int(number).to_bytes(length if size is None else size, "big", signed=True)

    return AvroForm(Types.BIG_DEC(), read, write)


def _plain(value: Any) -> Any:
    return value.as_dict(True) if isinstance(value, Row) else value


def _date_of(days: int) -> dt.date:
    return dt.date.fromordinal(days + _EPOCH_ORDINAL)


def _days_of(value: Any) -> int:
    day: dt.date = checked("Date")(value)
    return day.toordinal() - _EPOCH_ORDINAL


def _time_form(units_per_second: int) -> AvroForm:
    micros = 1_000_000 // units_per_second

    def read(units: int) -> dt.time:
        return (_MIDNIGHT + dt.timedelta(microseconds=units * micros)).time()

    def write(value: Any) -> int:
        time: dt.time = checked("Time")(value)
        return ((time.hour * 60 + time.minute) * 60 + time.second) * units_per_second + time.microsecond // micros

    return AvroForm(Types.SQL_TIME(), read, write)


def _timestamp_form(units_per_second: int) -> AvroForm:
    micros = 1_000_000 // units_per_second
    unit = dt.timedelta(microseconds=micros)

    def read(units: int) -> dt.datetime:
        return _EPOCH + dt.timedelta(microseconds=units * micros)

    def write(value: Any) -> int:
        moment: dt.datetime = checked("Timestamp")(value)
        if moment.tzinfo is not None:
            moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
        return (moment - _EPOCH) // unit

    return AvroForm(Types.SQL_TIMESTAMP(), read, write)


_LEAVES = {
    "null": AvroForm(Types.PICKLED_BYTE_ARRAY(), None, _plain, True),
    "boolean": AvroForm(Types.BOOLEAN(), None, checked("Boolean")),
    "int": AvroForm(Types.INT(), None, checked("Integer")),
    "long": AvroForm(Types.LONG(), None, checked("Long")),
    "float": AvroForm(Types.FLOAT(), None, checked("Float")),
    "double": AvroForm(Types.DOUBLE(), None, checked("Double")),
    "bytes": AvroForm(Types.PRIMITIVE_ARRAY(Types.BYTE()), None, checked("Bytes")),
    "string": AvroForm(Types.STRING(), None, checked("String")),
}
_LOGICAL = {
    ("int", "date"): AvroForm(Types.SQL_DATE(), _date_of, _days_of),
    ("int", "time-millis"): _time_form(1_000),
    ("long", "time-micros"): _time_form(1_000_000),
    ("long", "timestamp-millis"): _timestamp_form(1_000),
    ("long", "timestamp-micros"): _timestamp_form(1_000_000),
}
