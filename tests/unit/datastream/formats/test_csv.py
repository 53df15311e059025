"""CSV messages: Flink's results, settings and errors, pickles, and round trips."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import cloudpickle
import hypothesis
import pytest
from hypothesis import strategies as st

from rekindle.common import Instant, Row, Types
from rekindle.common.typeinfo import LocalTimeTypeInfo
from rekindle.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema
from rekindle.errors import GraphError, SerializationError
from tests.unit.datastream.formats.row_types import LEAVES, row_and_type

Reader, Writer = CsvRowDeserializationSchema.Builder, CsvRowSerializationSchema.Builder
LOCAL = LocalTimeTypeInfo.TimeType
THREE = Types.ROW([Types.STRING(), Types.INT(), Types.STRING()])


def around(part: Any) -> Any:
    return Types.ROW([Types.STRING(), part, Types.STRING()])


@pytest.mark.parametrize(
    ("part", "cell", "value"),
    [
        (Types.LONG(), "null", None),
        (Types.STRING(), "null", None),
        (Types.STRING(), '"This is a test."', "This is a test."),
        (Types.STRING(), '"This is a test\n\r."', "This is a test\n\r."),
        (Types.BOOLEAN(), "true", True),
        (Types.BYTE(), "124", 124),
        (Types.SHORT(), "10000", 10000),
        (Types.INT(), "1234567", 1234567),
        (Types.LONG(), "12345678910", 12345678910),
        (Types.DOUBLE(), "0.33333333332", 0.33333333332),
        (Types.DOUBLE(), "-Infinity", -math.inf),
        (Types.BIG_DEC(), '"1234.0000000000000000000000001"', Decimal("1234.0000000000000000000000001")),
        (Types.BIG_INT(), '"123400000000000000000000000000"', 123400000000000000000000000000),
        (Types.SQL_DATE(), "2018-10-12", dt.date(2018, 10, 12)),
        (Types.SQL_TIME(), "12:12:12", dt.time(12, 12, 12)),
        (Types.SQL_TIMESTAMP(), '"2018-10-12 12:12:12.0"', dt.datetime(2018, 10, 12, 12, 12, 12)),
        (LocalTimeTypeInfo(LOCAL.LOCAL_DATE_TIME), '"2018-10-12 12:12:12"', dt.datetime(2018, 10, 12, 12, 12, 12)),
        (Types.INSTANT(), '"1970-01-01 00:00:01.123456789Z"', Instant(1, 123456789)),
        (Types.INSTANT(), '"1970-01-01 00:00:12Z"', Instant(12, 0)),
        (Types.ROW([Types.STRING(), Types.INT(), Types.BOOLEAN()]), "Hello;42;false", Row("Hello", 42, False)),
        (Types.OBJECT_ARRAY(Types.STRING()), "a;b;c", ["a", "b", "c"]),
        (Types.OBJECT_ARRAY(Types.BYTE()), "12;4;null", [12, 4, None]),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), "awML", b"k\x03\x0b"),
    ],
)
def test_every_type_has_flinks_form(part: Any, cell: str, value: Any) -> None:
    line, row = f"BEGIN,{cell},END\n".encode(), Row("BEGIN", value, "END")
    assert Writer(around(part)).set_null_literal("null").build().serialize(row) == line
    assert Reader(around(part)).set_null_literal("null").build().deserialize(line) == row


@pytest.mark.parametrize(
    ("part", "cell", "value", "written"),
    [
        (Types.STRING(), "123*'4**", "123'4*", "'123''4**'"),
        (Types.STRING(), "'a;b*'c'", "a;b'c", "'a;b''c'"),
        (Types.INT(), "       12          ", 12, "12"),
        (
            LocalTimeTypeInfo(LOCAL.LOCAL_DATE_TIME),
            "    2018-10-12 12:12:12     ",
            dt.datetime(2018, 10, 12, 12, 12, 12),
            "'2018-10-12 12:12:12'",
        ),
        (Types.ROW([Types.STRING(), Types.STRING()]), "1:hello", Row("1", "hello"), "'1:hello'"),
        (Types.ROW([Types.STRING(), Types.STRING()]), "'1:hello world'", Row("1", "hello world"), "'1:hello world'"),
        (Types.STRING(), "null", "null", "null"),
    ],
)
def test_flinks_results_with_other_characters(part: Any, cell: str, value: Any, written: str) -> None:
    settings = ("set_escape_character", "*"), ("set_quote_character", "'"), ("set_array_element_delimiter", ":")
    reader, writer = Reader(around(part)), Writer(around(part))
    for method, character in (*settings, ("set_field_delimiter", ";")):
        getattr(reader, method)(character)
        getattr(writer, method)(character)
    row = Row("BEGIN", value, "END")
    assert reader.build().deserialize(f"BEGIN;{cell};END\n".encode()) == row
    assert writer.build().serialize(row) == f"BEGIN;{written};END\n".encode()


def test_line_ends_and_quotes_of_flinks_test() -> None:
    builder = Writer(THREE).set_line_delimiter("\r")
    assert builder.build().serialize(Row("Test", 12, "Hello")) == b"Test,12,Hello\r"
    builder.set_quote_character("#")
    assert builder.build().serialize(Row("Test", 12, "2019-12-26 12:12:12")) == b"Test,12,#2019-12-26 12:12:12#\r"
    builder.disable_quote_character()
    assert builder.build().serialize(Row("Test", 12, "2019-12-26 12:12:12")) == b"Test,12,2019-12-26 12:12:12\r"
    assert Writer(THREE).set_line_delimiter("").build().serialize(Row("Test", 12, "Hello")) == b"Test,12,Hello"
    assert Writer(THREE).build().serialize(Row("Test", None, "")) == b"Test,,\n"


@pytest.mark.parametrize(
    ("message", "ignored", "sentence"),
    [
        (b"Test,null,Test", Row("Test", None, "Test"), "field 'f1' must be Integer, not 'null'"),
        (b"Test,,Test", Row("Test", None, "Test"), "field 'f1' must be Integer, not ''"),
        (b"Test,1_0,Test", Row("Test", None, "Test"), "field 'f1' must be Integer, not '1_0'"),
        (b"Test,3000000000,Test", Row("Test", None, "Test"), "must be Integer (-2147483648 to 2147483647)"),
        (b"Test", Row("Test", None, None), "it has 1 values where 3 are expected"),
        (b"Test,12,Test,Test", None, "it has 4 values where 3 are expected"),
        (b'"Test,12,Test', None, "it is not a line of CSV: unexpected end of data"),
        (b'"Test"x,12,Test', None, "it is not a line of CSV: ',' expected after '\"'"),
        (b"Test,12,Test\nTest,12,Test", None, "it is not a line of CSV: it has more than one line"),
        (b"\xff,1,2", None, "it is not UTF-8 at byte 0"),
    ],
)
def test_what_does_not_fit_is_named_or_ignored_as_in_flink(message: bytes, ignored: Any, sentence: str) -> None:
    with pytest.raises(SerializationError) as raised:
        Reader(THREE).build().deserialize(message)
    assert str(raised.value).startswith("The CSV message does not fit its type: ")
    assert sentence in str(raised.value)
    assert Reader(THREE).set_ignore_parse_errors(True).build().deserialize(message) == ignored


def test_comments() -> None:
    assert Reader(THREE).build().deserialize(b"#Test,12,Test") == Row("#Test", 12, "Test")
    assert Reader(THREE).set_allow_comments(True).build().deserialize(b"#Test,12,Test") is None
    assert Reader(THREE).build().deserialize_all([b"a,1,b\r\n", None]) == [Row("a", 1, "b"), None]  # type: ignore[list-item]


def test_nested_rows_and_rows_that_are_none() -> None:
    inner = Types.ROW_NAMED(["s", "n", "at"], [Types.STRING(), Types.INT(), Types.INSTANT()])
    row_type = Types.ROW_NAMED(["left", "right"], [inner, inner])
    right = Row(s="This is 2nd", n=2, at=Instant(2, 0))
    row = Row(left=None, right=right)
    line = Writer(row_type).build().serialize(row)
    assert line == b',"This is 2nd;2;1970-01-01 00:00:02Z"\n'
    assert Reader(row_type).build().deserialize(line) == row
    with pytest.raises(SerializationError, match=r"field 'right\.n' must be Integer, not 'x'"):
        Reader(row_type).build().deserialize(b",a;x;b")


def test_classes_and_tuples_are_lines_too() -> None:
    assert Reader(tuple[str, int]).build().deserialize(b"a,1") == ("a", 1)
    assert Writer(tuple[str, int]).build().serialize(("a", 1)) == b"a,1\n"


@pytest.mark.parametrize(
    ("row", "part", "sentence"),
    [
        (Row("a", "x", "b"), Types.INT(), "field 'f1' must be Integer (-2147483648 to 2147483647), not 'x'"),
        (Row("a", ["x;y"], "b"), Types.OBJECT_ARRAY(str), "field 'f1[0]' must not hold the array delimiter ';': 'x;y'"),
        (Row("a", "b"), Types.INT(), "it has 2 fields where the type has 3"),
    ],
)
def test_records_that_do_not_fit_are_not_written(row: Row, part: Any, sentence: str) -> None:
    with pytest.raises(SerializationError) as raised:
        Writer(around(part)).build().serialize(row)
    assert str(raised.value).startswith("The record cannot be written as CSV: ")
    assert sentence in str(raised.value)


def test_without_quotes_special_characters_need_an_escape() -> None:
    row = Row("a,b", 1, "c\\d")
    with pytest.raises(SerializationError, match="must not hold a delimiter or a line end"):
        Writer(THREE).disable_quote_character().build().serialize(row)
    escaping = Writer(THREE).disable_quote_character().set_escape_character("\\").build()
    line = escaping.serialize(row)
    assert line == b"a\\,b,1,c\\\\d\n"
    with pytest.raises(SerializationError, match="must not hold a delimiter or a line end"):
        escaping.serialize(Row("a\nb", 1, ""))
    assert Reader(THREE).set_escape_character("\\").build().deserialize(line) == row


def test_settings_that_cannot_be() -> None:
    with pytest.raises(GraphError, match="CSV cannot hold field 'f0' of type Row"):
        Reader(Types.ROW([Types.ROW([Types.ROW([Types.STRING()])])]))
    with pytest.raises(GraphError, match="CSV cannot hold field 'f0' of type Map"):
        Writer(Types.ROW([Types.MAP(str, str)]))
    with pytest.raises(GraphError, match="CSV takes a type with fields"):
        Reader(Types.STRING())
    with pytest.raises(TypeError, match="needs a type with fields"):
        Reader(None)
    with pytest.raises(ValueError, match="set_field_delimiter takes one character, not ',,'"):
        Writer(THREE).set_field_delimiter(",,")
    with pytest.raises(ValueError, match="set_line_delimiter takes"):
        Writer(THREE).set_line_delimiter(";")
    with pytest.raises(GraphError, match="must differ: ; ;"):
        Writer(THREE).set_field_delimiter(";").set_quote_character(";").build()


def test_schemas_travel_without_their_converters() -> None:
    schemas = Reader(THREE).build(), Writer(THREE).build()
    row = Row("a", 1, "b")
    assert schemas[0].deserialize(schemas[1].serialize(row)) == row
    read, write = cloudpickle.loads(cloudpickle.dumps(schemas))
    assert read._built is None
    assert read.deserialize(write.serialize(row)) == row


NULL = "\\N"
CELLS = [
    (part, strategy.filter(lambda value: value != NULL) if part == Types.STRING() else strategy)
    for part, strategy in LEAVES
]
#: Elements of a cell: no array delimiter in them, and no text that is empty, which in an array of one is no array.
ELEMENTS = [
    (part, values.filter(lambda value: value not in ("", NULL) and ";" not in str(value)))
    for part, values in CELLS
    if part != Types.PRIMITIVE_ARRAY(Types.BYTE())
]
FIELDS = st.one_of(
    st.sampled_from(CELLS),
    st.sampled_from(ELEMENTS).map(lambda each: (Types.OBJECT_ARRAY(each[0]), st.lists(each[1], max_size=3))),
    st.tuples(st.sampled_from(ELEMENTS), st.sampled_from(ELEMENTS)).map(
        lambda pair: (
            Types.ROW_NAMED(["a", "b"], [pair[0][0], pair[1][0]]),
            st.builds(lambda a, b: Row(a=a, b=b), pair[0][1], st.none() | pair[1][1]),
        )
    ),
)


@hypothesis.given(
    row_and_type(FIELDS), st.sampled_from(",;|\tx"), st.sampled_from(["'", '"']), st.sampled_from([None, "^"])
)
def test_rows_come_back_as_they_were(row_and_its_type: Any, delimiter: str, quote: str, escape: str | None) -> None:
    row, row_type = row_and_its_type
    reader, writer = Reader(row_type), Writer(row_type)
    for builder in (reader, writer):
        builder.set_field_delimiter(delimiter).set_quote_character(quote).set_null_literal(NULL)
        if escape is not None:
            builder.set_escape_character(escape)
    assert reader.build().deserialize(writer.build().serialize(row)) == row
