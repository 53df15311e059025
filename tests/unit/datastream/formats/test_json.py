"""JSON messages: Flink's results, leniency and errors, JSON schemas, classes, pickles, and round trips."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any, NamedTuple

import cloudpickle
import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from rekindle.common import Instant, Row, Types
from rekindle.common.typeinfo import TypeInformation
from rekindle.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from rekindle.errors import GraphError, SerializationError
from tests.unit.datastream.formats.row_types import LEAVES, row_and_type


def reader(type_info: Any) -> JsonRowDeserializationSchema:
    return JsonRowDeserializationSchema.builder().type_info(type_info).build()


def writer(type_info: Any) -> JsonRowSerializationSchema:
    return JsonRowSerializationSchema.builder().with_type_info(type_info).build()


def one(part: Any) -> TypeInformation:
    return Types.ROW_NAMED(["id"], [part])


def test_every_type_is_read_and_written_in_flinks_forms() -> None:
    fields = {
        "id": (Types.LONG(), 1238123899121, "1238123899121"),
        "name": (Types.STRING(), "asdl", '"asdl"'),
        "bytes": (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"k\x03\x0b", '"awML"'),
        "date": (Types.SQL_DATE(), dt.date(1990, 10, 14), '"1990-10-14"'),
        "time": (Types.SQL_TIME(), dt.time(12, 12, 43), '"12:12:43Z"'),
        "timestamp": (Types.SQL_TIMESTAMP(), dt.datetime(1990, 10, 14, 12, 12, 43), '"1990-10-14T12:12:43Z"'),
        "fraction": (Types.SQL_TIMESTAMP(), dt.datetime(1990, 10, 14, 12, 0, 0, 5000), '"1990-10-14T12:00:00.005Z"'),
        "instant": (Types.INSTANT(), Instant(1, 123456789), '"1970-01-01T00:00:01.123456789Z"'),
        "decimal": (Types.BIG_DEC(), Decimal("1234.0000000000000000000000001"), "1234.0000000000000000000000001"),
        "big": (Types.BIG_INT(), 2**80, str(2**80)),
        "map": (Types.MAP(Types.STRING(), Types.LONG()), {"flink": 123}, '{"flink":123}'),
        "map2map": (
            Types.MAP(Types.STRING(), Types.MAP(Types.STRING(), Types.INT())),
            {"a": {"k": 4}},
            '{"a":{"k":4}}',
        ),
        "by_number": (Types.MAP(Types.INT(), Types.BOOLEAN()), {7: True}, '{"7":true}'),
        "by_date": (Types.MAP(Types.SQL_DATE(), Types.INT()), {dt.date(2020, 1, 2): 1}, '{"2020-01-02":1}'),
        "array": (Types.OBJECT_ARRAY(Types.STRING()), ["a", None], '["a",null]'),
        "floats": (Types.PRIMITIVE_ARRAY(Types.DOUBLE()), [1.5, 2.0], "[1.5,2.0]"),
        "row": (Types.ROW_NAMED(["x"], [Types.INT()]), Row(x=1), '{"x":1}'),
        "rows": (Types.OBJECT_ARRAY(Types.ROW([Types.INT()])), [Row(f0=1)], '[{"f0":1}]'),
        "tuple": (Types.TUPLE([Types.STRING(), Types.SQL_DATE()]), ("a", dt.date(2020, 1, 2)), '["a","2020-01-02"]'),
        "null": (Types.INT(), None, "null"),
    }
    row_type = Types.ROW_NAMED(list(fields), [part for part, _, _ in fields.values()])
    row = Row(**{name: value for name, (_, value, _) in fields.items()})
    message = ("{" + ",".join(f'"{name}":{text}' for name, (_, _, text) in fields.items()) + "}").encode()
    assert writer(row_type).serialize(row) == message
    assert reader(row_type).deserialize(message) == row
    assert reader(row_type).get_produced_type() == row_type


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ('"trueA"', Types.BOOLEAN(), False),
        ("true", Types.BOOLEAN(), True),
        ("112.013", Types.LONG(), 112),
        ("true", Types.STRING(), "true"),
        ("123.234", Types.STRING(), "123.234"),
        ("1234567", Types.STRING(), "1234567"),
        ('["data1",123,234.345]', Types.STRING(), '["data1",123,234.345]'),
        ('{"k1":123,"k2":234.234}', Types.STRING(), '{"k1":123,"k2":234.234}'),
        ('" 123 "', Types.INT(), 123),
        ('"1.5"', Types.DOUBLE(), 1.5),
        ('"-Infinity"', Types.DOUBLE(), -math.inf),
        ('"12.50"', Types.BIG_DEC(), Decimal("12.50")),
        ('"1990-10-14T12:12:43"', Types.SQL_TIMESTAMP(), dt.datetime(1990, 10, 14, 12, 12, 43)),
        ('"12:12:43"', Types.SQL_TIME(), dt.time(12, 12, 43)),
        ("7", Types.CHAR(), "7"),
    ],
)
def test_values_are_read_as_leniently_as_in_flink(text: str, part: Any, expected: Any) -> None:
    assert reader(one(part)).deserialize(f'{{"id":{text}}}'.encode()) == Row(id=expected)


@pytest.mark.parametrize(
    ("message", "row_type", "sentence", "ignored"),
    [
        ('{"id":"abc"}', one(Types.INT()), "field 'id' must be Integer, not \"abc\"", Row(id=None)),
        ('{"id":"1_0"}', one(Types.LONG()), "field 'id' must be Long, not \"1_0\"", Row(id=None)),
        (
            '{"id":3000000000}',
            one(Types.INT()),
            "field 'id' must be Integer (-2147483648 to 2147483647), not 3000000000",
            Row(id=None),
        ),
        ('{"id":1.5}', one(Types.SHORT()), "field 'id' must be Short, not 1.5", Row(id=None)),
        ('{"id":"112.013.123"}', one(Types.FLOAT()), "field 'id' must be Float, not \"112.013.123\"", Row(id=None)),
        ('{"id":"18:00:243"}', one(Types.SQL_TIME()), 'must be Time (hh:mm:ssZ), not "18:00:243"', Row(id=None)),
        ('{"id":"20191112"}', one(Types.SQL_DATE()), 'must be Date (yyyy-mm-dd), not "20191112"', Row(id=None)),
        (
            '{"id":"2019-11-12 18:00:12"}',
            one(Types.SQL_TIMESTAMP()),
            'must be Timestamp (yyyy-mm-ddThh:mm:ssZ), not "2019-11-12 18:00:12"',
            Row(id=None),
        ),
        ('{"id":"2019-11-12T18:00:12+01:00"}', one(Types.SQL_TIMESTAMP()), "must be Timestamp", Row(id=None)),
        ('{"id":"NaN"}', one(Types.BIG_DEC()), "field 'id' must be BigDecimal, not \"NaN\"", Row(id=None)),
        ('{"id":"a?"}', one(bytes), "field 'id' must be bytes (base64), not \"a?\"", Row(id=None)),
        (
            '{"row":{"id":"abc"}}',
            Types.ROW_NAMED(["row"], [one(Types.INT())]),
            "field 'row.id' must be Integer, not \"abc\"",
            Row(row=Row(id=None)),
        ),
        (
            '{"array":[123, "abc"]}',
            Types.ROW_NAMED(["array"], [Types.OBJECT_ARRAY(Types.INT())]),
            "field 'array[1]' must be Integer, not \"abc\"",
            Row(array=[123, None]),
        ),
        (
            '{"map":{"key1":"123", "key2":"abc"}}',
            Types.ROW_NAMED(["map"], [Types.MAP(Types.STRING(), Types.INT())]),
            "field 'map['key2']' must be Integer, not \"abc\"",
            Row(map={"key1": 123, "key2": None}),
        ),
        ("[1]", one(Types.INT()), "it must be Row<id: Integer>, not [1]", None),
    ],
)
def test_what_does_not_fit_is_named_or_becomes_none(
    message: str, row_type: TypeInformation, sentence: str, ignored: Row | None
) -> None:
    with pytest.raises(SerializationError) as raised:
        reader(row_type).deserialize(message.encode())
    assert str(raised.value).startswith("The JSON message does not fit its type: ")
    assert sentence in str(raised.value)
    assert str(raised.value).endswith(f"; the message is {message}.")
    forgiving = JsonRowDeserializationSchema.builder().type_info(row_type).ignore_parse_errors().build()
    assert forgiving.deserialize(message.encode()) == ignored


@pytest.mark.parametrize("message", [b"", b"{", b'{"id":NaN}', b'{"id":1} x', b'{"id":"\xff"}'])
def test_messages_that_are_not_json(message: bytes) -> None:
    with pytest.raises(SerializationError, match=r"^The message is not JSON: .*; the message is .*\.$"):
        reader(one(str)).deserialize(message)
    assert JsonRowDeserializationSchema.builder().type_info(one(str)).ignore_parse_errors().build().deserialize_all(
        [message, b'{"id":"x"}']
    ) == [None, Row(id="x")]


def test_a_long_message_is_cut_in_the_sentence() -> None:
    with pytest.raises(SerializationError) as raised:
        reader(one(int)).deserialize(b'{"id":"' + b"x" * 10_000 + b'"}')
    assert len(str(raised.value)) < 400


def test_missing_fields() -> None:
    message = b'{"id":123123123}'
    row_type = Types.ROW_NAMED(["name"], [Types.STRING()])
    assert reader(row_type).deserialize(message) == Row(name=None)
    strict = JsonRowDeserializationSchema.builder().type_info(row_type).fail_on_missing_field().build()
    with pytest.raises(SerializationError, match="field 'name' is missing; the message is"):
        strict.deserialize(message)
    assert strict.deserialize(b'{"name":null}') == Row(name=None)
    with pytest.raises(ValueError, match="exclude each other"):
        JsonRowDeserializationSchema.builder().type_info(row_type).fail_on_missing_field().ignore_parse_errors().build()


def test_null_and_deletions_are_skipped() -> None:
    assert reader(one(int)).deserialize(b"null") is None
    assert reader(one(int)).deserialize_all([b"null", None, b'{"id":1}']) == [None, None, Row(id=1)]  # type: ignore[list-item]


def test_a_type_is_needed() -> None:
    with pytest.raises(TypeError, match=r"needs a type: call type_info\(\)"):
        JsonRowDeserializationSchema.builder().build()
    with pytest.raises(TypeError, match=r"needs a type: call with_type_info\(\)"):
        JsonRowSerializationSchema.builder().build()


SCHEMA = {
    "type": "object",
    "definitions": {"point": {"type": "object", "properties": {"x": {"type": "number"}}}},
    "properties": {
        "id": {"type": "integer"},
        "or_null": {"type": ["integer", "null"]},
        "name": {"type": "string"},
        "date": {"type": "string", "format": "date"},
        "time": {"type": "string", "format": "time"},
        "timestamp": {"type": "string", "format": "date-time"},
        "bytes": {"type": "string", "contentEncoding": "base64"},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "pair": {"type": "array", "items": [{"type": "string"}, {"type": "boolean"}]},
        "nested": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/point"}]},
    },
}


def test_a_json_schema_describes_the_rows() -> None:
    schema = JsonRowDeserializationSchema.builder().json_schema(json.dumps(SCHEMA)).build()
    message = {
        "id": 1238123899121,
        "or_null": None,
        "name": "asdl",
        "date": "1990-10-14",
        "time": "12:12:43Z",
        "timestamp": "1990-10-14T12:12:43Z",
        "bytes": "awML",
        "numbers": [1, 2],
        "pair": ["a", True],
        "nested": {"x": 12},
    }
    assert schema.deserialize(json.dumps(message).encode()) == Row(
        id=Decimal(1238123899121),
        or_null=None,
        name="asdl",
        date=dt.date(1990, 10, 14),
        time=dt.time(12, 12, 43),
        timestamp=dt.datetime(1990, 10, 14, 12, 12, 43),
        bytes=b"k\x03\x0b",
        numbers=[Decimal(1), Decimal(2)],
        pair=("a", True),
        nested=Row(x=Decimal(12)),
    )


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("{", "The JSON schema is not JSON: "),
        ('{"type":"object","properties":{"a":{}}}', "needs one type, or one and null, at <root>/a; it has none."),
        ('{"type":["string","boolean"]}', "needs one type, or one and null, at <root>"),
        ('{"anyOf":[]}', "has 'anyOf' at <root>, which is not supported"),
        ('{"type":"array"}', "needs 'items', and no additional ones, for the array at <root>."),
        ('{"type":"date"}', "has the unknown type 'date' at <root>."),
        ('{"$ref":"#/nowhere"}', "has no #/nowhere, which it refers to at <root>."),
        ('{"$ref":"#/a","a":{"$ref":"#/a"}}', "refers to itself at #/a: #/a."),
        ('{"type":"object","additionalProperties":true}', "allows additional properties at <root>"),
        ('{"type":"string","contentEncoding":"hex"}', "has the unknown encoding 'hex' at <root>"),
    ],
)
def test_json_schemas_that_are_no_type(schema: str, sentence: str) -> None:
    with pytest.raises(GraphError) as raised:
        JsonRowDeserializationSchema.builder().json_schema(schema)
    assert sentence in str(raised.value)


class Click(msgspec.Struct, frozen=True):
    user: str
    at: dt.datetime
    count: int = 1


@dataclasses.dataclass
class Order:
    id: int
    tags: list[str] = dataclasses.field(default_factory=list)


class Pair(NamedTuple):
    left: str
    right: dt.date


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (Click("ann", dt.datetime(2020, 1, 2), 3), b'{"user":"ann","at":"2020-01-02T00:00:00","count":3}'),
        (Order(1, ["a"]), b'{"id":1,"tags":["a"]}'),
        (Pair("a", dt.date(2020, 1, 2)), b'{"left":"a","right":"2020-01-02"}'),
    ],
)
def test_classes_are_read_and_written_by_their_fields(record: Any, message: bytes) -> None:
    assert writer(type(record)).serialize(record) == message
    read = reader(type(record)).deserialize(message)
    assert read == record
    assert type(read) is type(record)


def test_a_class_is_read_leniently_and_errors_say_what_does_not_fit() -> None:
    assert reader(Order).deserialize(b'{"id":"7"}') == Order(7)
    with pytest.raises(
        SerializationError, match=r"it does not fit Dataclass<Order>: Expected `int`, got `str`.*\$\.id"
    ):
        reader(Order).deserialize(b'{"id":"x"}')
    with pytest.raises(SerializationError, match=r"must be Dataclass<Order>, not 7"):
        writer(Order).serialize(7)


@pytest.mark.parametrize(
    ("row", "part", "sentence"),
    [
        (Row(id="x"), Types.INT(), "field 'id' must be Integer (-2147483648 to 2147483647), not 'x'"),
        (Row(id=2**31), Types.INT(), "not 2147483648"),
        (Row(id=True), Types.LONG(), "not True"),
        (Row(id=1), Types.STRING(), "field 'id' must be String, not 1"),
        (Row(id=[1, "a"]), Types.LIST(Types.INT()), "field 'id[1]' must be Integer"),
        (Row(id={None: 1}), Types.MAP(str, int), "must not be None: a key of a JSON object is text"),
        (Row(id=dt.datetime(2020, 1, 1)), Types.SQL_DATE(), "field 'id' must be Date"),
        (Row(id=Decimal("NaN")), Types.BIG_DEC(), "field 'id' must be BigDecimal"),
        (Row(id=object()), None, "must be a value that JSON has"),
        (Row(other=1), Types.INT(), "must be Row<id: Integer>"),
        (5, Types.INT(), "must be Row<id: Integer>, not 5"),
    ],
)
def test_records_that_do_not_fit_are_not_written(row: Any, part: Any, sentence: str) -> None:
    with pytest.raises(SerializationError) as raised:
        writer(one(part)).serialize(row)
    assert str(raised.value).startswith("The record cannot be written as JSON: ")
    assert sentence in str(raised.value)


def test_numbers_that_json_has_not_are_text_as_in_jackson() -> None:
    row = Row(id=[math.nan, math.inf, -math.inf])
    message = writer(one(Types.LIST(Types.DOUBLE()))).serialize(row)
    assert message == b'{"id":["NaN","Infinity","-Infinity"]}'
    nan, *others = reader(one(Types.LIST(Types.DOUBLE()))).deserialize(message).id
    assert math.isnan(nan)
    assert others == [math.inf, -math.inf]
    assert writer(one(Types.DOUBLE())).serialize(Row(id=math.nan)) == b'{"id":"NaN"}'


def test_dicts_and_tuples_stand_for_rows() -> None:
    assert writer(one(int)).serialize({"id": 1}) == writer(one(int)).serialize((1,)) == b'{"id":1}'


def test_schemas_travel_without_their_decoders() -> None:
    schemas = reader(one(Types.SQL_DATE())), writer(one(Types.SQL_DATE()))
    row = Row(id=dt.date(2020, 1, 2))
    assert schemas[0].deserialize(schemas[1].serialize(row)) == row
    read, write = cloudpickle.loads(cloudpickle.dumps(schemas))
    assert read._built is None
    assert read.deserialize_all([write.serialize(row)]) == [row]


FIELDS = st.recursive(
    st.sampled_from(LEAVES),
    lambda fields: st.one_of(
        fields.map(lambda field: (Types.LIST(field[0]), st.lists(st.none() | field[1], max_size=3))),
        fields.map(
            lambda field: (
                Types.MAP(str, field[0]),
                st.dictionaries(st.text(max_size=5), st.none() | field[1], max_size=3),
            )
        ),
        st.tuples(fields, fields).map(
            lambda pair: (
                Types.ROW_NAMED(["a", "b"], [pair[0][0], pair[1][0]]),
                st.builds(lambda a, b: Row(a=a, b=b), st.none() | pair[0][1], st.none() | pair[1][1]),
            )
        ),
        st.tuples(fields, fields).map(
            lambda pair: (Types.TUPLE([pair[0][0], pair[1][0]]), st.tuples(pair[0][1], st.none() | pair[1][1]))
        ),
    ),
    max_leaves=3,
)


@hypothesis.given(row_and_type(FIELDS))
def test_rows_come_back_as_they_were(row_and_its_type: Any) -> None:
    row, row_type = row_and_its_type
    message = writer(row_type).serialize(row)
    assert json.loads(message, parse_float=Decimal).keys() == set(row._names)
    fast = reader(row_type)
    assert fast.deserialize(message) == row
    # The lenient way must agree with the fast way on everything that the fast way reads.
    assert fast._read_leniently(message, fast._built[2]) == row
