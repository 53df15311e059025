"""Avro messages: Flink's types, errors, the schema registry (its client's own stand-in), pickles, and round trips."""

from __future__ import annotations

import datetime as dt
import io
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import cloudpickle
import fastavro
import hypothesis
import pytest
from hypothesis import strategies as st

from rekindle.common import Row, Types
from rekindle.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema, AvroSchema
from rekindle.errors import ConfigurationError, ConnectorError, GraphError, SerializationError
from tests.unit.datastream.formats.row_types import TEXTS, TIMESTAMPS


def record(**fields: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields.items()]})


def reader(schema: str, **settings: Any) -> AvroRowDeserializationSchema:
    return AvroRowDeserializationSchema(avro_schema_string=schema, **settings)


def writer(schema: str, **settings: Any) -> AvroRowSerializationSchema:
    return AvroRowSerializationSchema(avro_schema_string=schema, **settings)


def logical(kind: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


EVERY = {
    "boolean": ("boolean", Types.BOOLEAN(), True),
    "int": ("int", Types.INT(), -1),
    "long": ("long", Types.LONG(), 2**40),
    "float": ("float", Types.FLOAT(), 0.5),
    "double": ("double", Types.DOUBLE(), 0.1),
    "string": ("string", Types.STRING(), "größer"),
    "bytes": ("bytes", Types.PRIMITIVE_ARRAY(Types.BYTE()), b"k\x03"),
    "fixed": ({"type": "fixed", "name": "F", "size": 2}, Types.PRIMITIVE_ARRAY(Types.BYTE()), b"ab"),
    "enum": ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, Types.STRING(), "B"),
    "array": ({"type": "array", "items": "string"}, Types.OBJECT_ARRAY(Types.STRING()), ["a", "b"]),
    "map": ({"type": "map", "values": "long"}, Types.MAP(Types.STRING(), Types.LONG()), {"a": 1}),
    "nullable": (["null", "int"], Types.INT(), None),
    "present": (["int", "null"], Types.INT(), 7),
    "union": (["int", "string"], Types.PICKLED_BYTE_ARRAY(), "either"),
    "date": (logical("int", "date"), Types.SQL_DATE(), dt.date(2014, 3, 1)),
    "time": (logical("int", "time-millis"), Types.SQL_TIME(), dt.time(12, 12, 12)),
    "micros": (logical("long", "time-micros"), Types.SQL_TIME(), dt.time(12, 12, 12, 5)),
    "timestamp": (
        logical("long", "timestamp-millis"),
        Types.SQL_TIMESTAMP(),
        dt.datetime(2014, 3, 1, 12, 12, 12, 321000),
    ),
    "timestamps": (
        {"type": "array", "items": logical("long", "timestamp-micros")},
        Types.OBJECT_ARRAY(Types.SQL_TIMESTAMP()),
        [dt.datetime(1900, 1, 1, 0, 0, 0, 1)],
    ),
    "decimal": (logical("bytes", "decimal", precision=4, scale=2), Types.BIG_DEC(), Decimal("-20.00")),
    "fixed_decimal": (
        logical("fixed", "decimal", name="D", size=3, precision=4, scale=2),
        Types.BIG_DEC(),
        Decimal("20.00"),
    ),
    "local": (logical("long", "local-timestamp-millis"), Types.LONG(), 7),
    "uuid": (logical("string", "uuid"), Types.STRING(), "x"),
    "nested": (
        {"type": "record", "name": "N", "fields": [{"name": "d", "type": ["null", logical("int", "date")]}]},
        Types.ROW_NAMED(["d"], [Types.SQL_DATE()]),
        Row(d=dt.date(2014, 3, 1)),
    ),
    "again": (["null", "N"], Types.ROW_NAMED(["d"], [Types.SQL_DATE()]), Row(d=None)),
}


def test_every_type_becomes_flinks() -> None:
    schema = record(**{name: part for name, (part, _, _) in EVERY.items()})
    row = Row(**{name: value for name, (_, _, value) in EVERY.items()})
    produced = reader(schema).get_produced_type()
    assert repr(produced) == repr(Types.ROW_NAMED(list(EVERY), [part for _, part, _ in EVERY.values()]))
    message = writer(schema).serialize(row)
    assert reader(schema).deserialize(message) == row
    assert reader(schema).deserialize_all([message, None]) == [row, None]  # type: ignore[list-item]


def test_the_bytes_are_those_of_other_programs() -> None:
    schema = record(at=logical("long", "timestamp-millis"), price=logical("bytes", "decimal", precision=6, scale=2))
    moment, price = dt.datetime(2020, 1, 2, 3, 4, 5), Decimal("-1234.50")
    foreign = io.BytesIO()
    parsed = fastavro.parse_schema(json.loads(schema))
    fastavro.schemaless_writer(foreign, parsed, {"at": moment.replace(tzinfo=dt.UTC), "price": price})
    assert writer(schema).serialize(Row(at=moment, price=price)) == foreign.getvalue()
    assert reader(schema).deserialize(foreign.getvalue()) == Row(at=moment, price=price)
    zone = dt.timezone(dt.timedelta(hours=1))
    assert writer(schema).serialize({"at": moment.replace(hour=4, tzinfo=zone), "price": price}) == foreign.getvalue()


@pytest.mark.parametrize(
    ("part", "value", "sentence"),
    [
        ("int", 2**31, "field 'x' must be Integer (-2147483648 to 2147483647), not 2147483648"),
        ("string", 1, "field 'x' must be String, not 1"),
        ("string", None, "field 'x' must not be None: the schema does not allow null"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "C", "field 'x' must be one of A, B, not 'C'"),
        ({"type": "fixed", "name": "F", "size": 2}, b"abc", "field 'x' must be 2 bytes, not b'abc'"),
        (logical("bytes", "decimal", precision=4, scale=2), Decimal("1.234"), "field 'x' must be Decimal(4, 2)"),
        (logical("bytes", "decimal", precision=4, scale=2), Decimal("123"), "field 'x' must be Decimal(4, 2)"),
        ({"type": "array", "items": "int"}, [1, "a"], "field 'x[1]' must be Integer"),
        ({"type": "map", "values": "int"}, {"k": "a"}, "field 'x['k']' must be Integer"),
        ({"type": "record", "name": "N", "fields": [{"name": "y", "type": "int"}]}, Row(y="a"), "field 'x.y' must be"),
    ],
)
def test_records_that_do_not_fit_are_not_written(part: Any, value: Any, sentence: str) -> None:
    with pytest.raises(SerializationError) as raised:
        writer(record(x=part)).serialize(Row(x=value))
    assert str(raised.value).startswith("The record cannot be written as Avro: ")
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (b"", "it is not of the schema: EOFError; the message is b''."),
        (b"\x06an", "it is not of the schema: "),
        (b"\x06annX", "it has 1 bytes more than a record of the schema"),
        (b"\x00\x00\x00\x00\x01\x06ann", "bytes more than a record of the schema"),
        (b"\x02\xff", "it is not of the schema: UnicodeDecodeError"),
    ],
)
def test_messages_of_other_schemas(message: bytes, sentence: str) -> None:
    with pytest.raises(SerializationError) as raised:
        reader(record(x="string")).deserialize(message)
    assert str(raised.value).startswith("The Avro message cannot be read: ")
    assert sentence in str(raised.value)


def test_a_message_of_a_registry_without_a_registry_is_recognised() -> None:
    with pytest.raises(SerializationError, match="as messages of a schema registry do: set schema_registry_url"):
        reader(record(a="string", b="string", c="double", d="double")).deserialize(b"\x00\x00\x00\x00\x01\x06ann")


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("{", "The Avro schema is not JSON: "),
        ('{"type": "record"}', "The Avro schema is not valid: "),
        ('"string"', "The Avro schema must be a record, which becomes a row, not String."),
        (record(next=["null", "R"]), "The Avro schema's record R contains itself"),
    ],
)
def test_schemas_that_cannot_be_used(schema: str, sentence: str) -> None:
    with pytest.raises(GraphError) as raised:
        reader(schema)
    assert sentence in str(raised.value)


def test_arguments_that_cannot_be_used() -> None:
    with pytest.raises(GraphError, match="record_class names a Java class, which Python does not have"):
        AvroRowDeserializationSchema("com.example.Click")
    with pytest.raises(TypeError, match="give avro_schema_string"):
        AvroRowSerializationSchema()
    with pytest.raises(GraphError, match="needs both"):
        writer(record(x="int"), schema_registry_url="mock://x")
    with pytest.raises(GraphError, match="need a schema_registry_url"):
        reader(record(x="int"), schema_registry_options={"a": "b"})


def test_schemas_from_text_and_file(tmp_path: Path) -> None:
    text = record(x="int")
    path = tmp_path / "schema.avsc"
    path.write_text(text)
    assert str(AvroSchema.parse_file(str(path))) == str(AvroSchema.parse_string(text)) == text
    with pytest.raises(ConnectorError, match=r"missing\.avsc cannot be read: No such file"):
        AvroSchema.parse_file(str(tmp_path / "missing.avsc"))
    with pytest.raises(GraphError, match="is not valid"):
        AvroSchema.parse_string('"no type"')


def test_a_registry_resolves_the_writers_schema_to_the_readers() -> None:
    registry = {"schema_registry_url": "mock://evolution"}
    old = record(user="string", gone="int")
    fields = [{"name": "at", "type": logical("int", "date"), "default": 0}, {"name": "user", "type": "string"}]
    new = json.dumps({"type": "record", "name": "R", "fields": fields})
    first = writer(old, subject="clicks-value", **registry).serialize(Row("ann", 1))
    second = writer(new, subject="clicks-value", **registry).serialize(Row(dt.date(2020, 1, 2), "bob"))
    assert first[0] == second[0] == 0
    assert first[1:5] != second[1:5]
    read = reader(new, **registry)
    assert read.deserialize_all([first, second, first]) == [
        Row(at=dt.date(1970, 1, 1), user="ann"),
        Row(at=dt.date(2020, 1, 2), user="bob"),
        Row(at=dt.date(1970, 1, 1), user="ann"),
    ]


def test_each_schema_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"schema_registry_url": "mock://cached"}
    schema = record(x="int")
    message = writer(schema, subject="s", **settings).serialize(Row(1))
    read = reader(schema, **settings)
    assert read.deserialize(message) == Row(x=1)
    assert read._registry is not None
    monkeypatch.setattr(type(read._registry), "_client", None)
    assert read.deserialize(message) == Row(x=1)


def test_a_schema_with_references() -> None:
    from confluent_kafka.schema_registry import Schema, SchemaReference

    settings = {"schema_registry_url": "mock://references"}
    schema = record(p={"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]})
    read = reader(schema, **settings)
    assert read._registry is not None
    client = read._registry._client()
    client.register_schema("point", Schema(json.dumps(json.loads(schema)["fields"][0]["type"]), "AVRO"))
    version = client.get_latest_version("point").version
    schema_id = client.register_schema(
        "r", Schema(record(p="Point"), "AVRO", [SchemaReference("Point", "point", version)])
    )
    assert read.deserialize(b"\0" + schema_id.to_bytes(4, "big") + b"\x0e") == Row(p=Row(x=7))


def test_registry_errors_name_the_registry_but_no_secret() -> None:
    schema = record(x="int")
    with pytest.raises(SerializationError, match="it must begin with byte 0 and a schema id"):
        reader(schema, schema_registry_url="mock://e").deserialize(b"\x01")
    with pytest.raises(
        SerializationError, match="the schema id 99, which the schema registry at mock://e does not know"
    ):
        reader(schema, schema_registry_url="mock://e").deserialize(b"\x00\x00\x00\x00\x63\x02")
    secret = {"basic.auth.user.info": "ann:secret", "max.retries": 0}
    unreachable = reader(schema, schema_registry_url="http://localhost:1", schema_registry_options=secret)
    with pytest.raises(ConnectorError, match="The schema registry at http://localhost:1 did not get schema") as raised:
        unreachable.deserialize(b"\x00\x00\x00\x00\x63\x02")
    assert "secret" not in f"{raised.value}{unreachable!r}"
    assert repr(unreachable).endswith("basic.auth.user.info=..., max.retries=...))")
    with_password = writer(schema, schema_registry_url="http://ann:secret@host/x", subject="s")
    assert repr(with_password) == "AvroRowSerializationSchema(Row<x: Integer>, SchemaRegistry(http://host/x))"
    wrong = reader(schema, schema_registry_url="http://localhost:1", schema_registry_options={"no.such": "secret"})
    with pytest.raises(ConfigurationError, match=r"cannot be used: Unrecognized properties: no\.such") as refused:
        wrong.deserialize(b"\x00\x00\x00\x00\x63\x02")
    assert "secret" not in str(refused.value)


def test_a_missing_package_is_one_sentence() -> None:
    program = (
        "import sys; sys.modules[sys.argv[1]] = None\n"
        "from rekindle.datastream.formats.avro import AvroRowDeserializationSchema\n"
        'schema = \'{"type": "record", "name": "R", "fields": []}\'\n'
        "AvroRowDeserializationSchema(None, schema, schema_registry_url='mock://x').deserialize(bytes(5))\n"
    )
    for package, sentence in (
        ("fastavro", "Avro needs the package fastavro: pip install 'rekindle[avro]'."),
        ("confluent_kafka.schema_registry", "A schema registry needs the package"),
    ):
        ended = subprocess.run([sys.executable, "-c", program, package], capture_output=True, text=True, check=False)
        assert sentence in ended.stderr.splitlines()[-1]


def test_schemas_travel_without_their_connections() -> None:
    settings = {"schema_registry_url": "mock://travel"}
    schemas = reader(record(x="int"), **settings), writer(record(x="int"), subject="s", **settings)
    assert schemas[0].deserialize(schemas[1].serialize(Row(1))) == Row(x=1)
    read, write = cloudpickle.loads(cloudpickle.dumps(schemas))
    assert read._built is None
    assert read._registry._schemas == {}
    assert read.deserialize(write.serialize(Row(1))) == Row(x=1)


LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("string", TEXTS),
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("double", st.floats(allow_nan=False)),
    ("float", st.floats(allow_nan=False, width=32)),
    ("bytes", st.binary(max_size=20)),
    (logical("int", "date"), st.dates()),
    (logical("long", "time-micros"), st.times()),
    (logical("long", "timestamp-micros"), TIMESTAMPS),
    (logical("bytes", "decimal", precision=40, scale=10), st.decimals(-(10**20), 10**20, places=10)),
]
FIELDS = st.recursive(
    st.sampled_from(LEAVES),
    lambda fields: st.one_of(
        fields.map(lambda field: ({"type": "array", "items": field[0]}, st.lists(field[1], max_size=3))),
        fields.map(lambda field: ({"type": "map", "values": field[0]}, st.dictionaries(TEXTS, field[1], max_size=3))),
        st.tuples(st.uuids(), fields).map(
            lambda pair: (
                {"type": "record", "name": f"N{pair[0].hex}", "fields": [{"name": "a", "type": ["null", pair[1][0]]}]},
                st.builds(lambda a: Row(a=a), st.none() | pair[1][1]),
            )
        ),
    ),
    max_leaves=3,
)


@hypothesis.given(st.data(), st.lists(FIELDS, min_size=1, max_size=4))
def test_rows_come_back_as_they_were(data: Any, fields: list[Any]) -> None:
    # Fields drawn twice hold the same record type: its second mention would be a second definition.
    named = {
        f"f{index}": field for index, field in enumerate({json.dumps(part): (part, s) for part, s in fields}.values())
    }
    schema = record(**{name: ["null", part] for name, (part, _) in named.items()})
    row = Row(**{name: data.draw(st.none() | strategy) for name, (_, strategy) in named.items()})
    assert reader(schema).deserialize(writer(schema).serialize(row)) == row
