"""Reader of files with one JSON value per line."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from typing import Any

import msgspec

from rekindle.common.time import Instant
from rekindle.common.type_system.fields import fields_of, instant_of, record_maker
from rekindle.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    DataclassTypeInfo,
    ExternalTypeInfo,
    InstantTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    NamedTupleTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    StructTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from rekindle.datastream.connectors.files.formats import RecordReader, StreamFormat
from rekindle.datastream.connectors.files.lines import LineReader
from rekindle.datastream.connectors.files.splits import FileSplit
from rekindle.datastream.connectors.files.streams import is_compressed
from rekindle.errors import ConnectorError

Convert = Callable[[Any], Any]
_NON_FINITE = (b"NaN", b"Infinity")


class JsonLinesFormat(StreamFormat):
    """Reads one JSON value per line, in UTF-8."""

    def __init__(self, type_info: TypeInformation | None) -> None:
        self._type_info = type_info

    def open(self, split: FileSplit) -> RecordReader:
        """Return a reader of values."""
        return _JsonLines(split, self._type_info)

    def is_splittable(self, path: str) -> bool:
        """Return False for compressed files."""
        return not is_compressed(path)

    def get_produced_type(self, path: str | None) -> TypeInformation | None:
        """Return the declared type."""
        return self._type_info


class _JsonLines:
    def __init__(self, split: FileSplit, type_info: TypeInformation | None) -> None:
        self._split = split
        self._lines = LineReader(split, "utf-8")
        hint, self._convert = json_form(type_info)
        self._hint = hint | None
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(self._hint)
        self.offset = self._lines.offset

    def read(self, max_records: int) -> list[Any]:
        begin = self._lines.offset
        while lines := self._lines.take(max_records):
            try:
                records = self._decoder.decode_lines(b"\n".join(lines))
            except (msgspec.DecodeError, UnicodeDecodeError):
                records = self._line_by_line(lines, begin)
            self.offset = begin = self._lines.offset
            if records:
                return records if self._convert is None else _each(self._convert)(records)
        return []

    def _line_by_line(self, lines: list[bytes], offset: int) -> list[Any]:
        """Decode lines of which one has a NaN or an infinity, or cannot be decoded."""
        records = []
        for line in lines:
            try:
                if line.strip():
                    records.append(self._decode(line))
            except (msgspec.MsgspecError, ValueError) as error:
                raise ConnectorError(
                    f"{self._split.path}: the line at offset {offset} is not the JSON that was expected: "
                    f"{str(error).rstrip('.')}."
                ) from None
            offset += len(line) + 1
        return records

    def _decode(self, line: bytes) -> Any:
        if not any(word in line for word in _NON_FINITE):
            return self._decoder.decode(line)
        # Without quotes only Python's decoder reads them; with quotes, as Flink writes them, they are lenient numbers.
        lenient = any(b'"%s"' % word in line or b'"-%s"' % word in line for word in _NON_FINITE)
        try:
            return msgspec.convert(json.loads(line), self._hint, strict=True, str_keys=True)
        except msgspec.ValidationError:
            if not lenient:
                raise
            return msgspec.convert(json.loads(line), self._hint, strict=False, str_keys=True)

    def close(self) -> None:
        self._lines.close()


def json_form(type_info: TypeInformation | None) -> tuple[Any, Convert | None]:
    """Return the type that msgspec decodes, and the function from that to a value of `type_info`, or None."""
    match type_info:
        case None | PickledBytesTypeInfo():
            return Any, None
        case ExternalTypeInfo():
            return json_form(type_info._type_info)
        case InstantTypeInfo():
            return dt.datetime | Instant, _instant_of_either
        case BasicTypeInfo() if type_info._basic_type is BasicType.BIG_INT:
            return int, None  # JSON numbers have no size limit, so large ones are not written as text
        case PrimitiveArrayTypeInfo() if type_info.python_type() is bytes:
            return bytes, None
        case ListTypeInfo():
            hint, convert = json_form(type_info.elem_type)
            return list[hint | None], None if convert is None else _each(convert)  # type: ignore[valid-type]
        case MapTypeInfo():
            (key, convert_key), (hint, convert) = map(json_form, type_info._parts)
            if convert_key is _instant_of_either:
                key = dt.datetime  # a key of a JSON object is text
            same = convert_key is None and convert is None
            return dict[key, hint | None], None if same else _each_entry(convert_key, convert)  # type: ignore[valid-type]
        case TupleTypeInfo():
            return _array_form(type_info)
        case RowTypeInfo() | NamedTupleTypeInfo():
            return _object_form(type_info)
        case DataclassTypeInfo() | StructTypeInfo():
            return type_info.get_class(), None
    return type_info.python_type() or Any, None


def _instant_of_either(read: dt.datetime | Instant) -> Instant:
    """Return the Instant of an object, as Rekindle writes it, or of a text, as other programs write it."""
    return read if isinstance(read, Instant) else instant_of(read)


def _array_form(type_info: TupleTypeInfo) -> tuple[Any, Convert | None]:
    forms = [json_form(part) for part in type_info.get_field_types()]
    converts = [convert for _, convert in forms]
    hints = tuple(hint | None for hint, _ in forms)
    if not any(converts):
        return tuple[hints], None  # type: ignore[valid-type]
    return tuple[hints], lambda values: tuple(  # type: ignore[valid-type]
        value if convert is None or value is None else convert(value)
        for convert, value in zip(converts, values, strict=True)
    )


def _object_form(type_info: TypeInformation) -> tuple[Any, Convert]:
    """Read fields by name from a JSON object, for types that msgspec by default reads from an array."""
    fields = fields_of(type_info) or []
    forms = [json_form(part) for _, part in fields]
    slots = [f"f{index}" for index in range(len(fields))]  # a field may have a name that is no Python identifier
    hint = msgspec.defstruct(
        "Record",
        [(slot, form | None, None) for slot, (form, _) in zip(slots, forms, strict=True)],
        rename=dict(zip(slots, (name for name, _ in fields), strict=True)),
    )
    converts = [convert for _, convert in forms]
    make = record_maker(type_info)

    def convert_object(read: Any) -> Any:
        values = msgspec.structs.astuple(read)
        converted = [
            value if convert is None or value is None else convert(value)
            for convert, value in zip(converts, values, strict=True)
        ]
        return make([converted])[0]

    return hint, convert_object


def _each(convert: Convert) -> Convert:
    return lambda values: [None if value is None else convert(value) for value in values]


def _each_entry(convert_key: Convert | None, convert: Convert | None) -> Convert:
    return lambda items: {
        key if convert_key is None else convert_key(key): value if convert is None or value is None else convert(value)
        for key, value in items.items()
    }
