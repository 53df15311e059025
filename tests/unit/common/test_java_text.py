"""Records as text in Java's form; the values and texts were taken from a real PyFlink 2.3."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from rekindle.common import Encoder, Instant, Row, RowKind, Types
from rekindle.common.java_text import java_text, printed_text
from rekindle.common.typeinfo import ExternalTypeInfo, LocalTimeTypeInfo
from rekindle.datastream.functions import PrintSinkFunction

LOCAL = LocalTimeTypeInfo.TimeType


@pytest.mark.parametrize(
    ("type_info", "value", "text"),
    [
        (Types.STRING(), "a b", "a b"),
        (Types.BOOLEAN(), True, "true"),
        (Types.BOOLEAN(), False, "false"),
        (Types.INT(), -7, "-7"),
        (Types.FLOAT(), 1.1, "1.1"),
        (Types.FLOAT(), 0.10000000149011612, "0.1"),
        (Types.FLOAT(), 16777216.0, "1.6777216E7"),
        (Types.FLOAT(), 3.4e-5, "3.4E-5"),
        (Types.DOUBLE(), 1, "1.0"),
        (Types.DOUBLE(), 1e7, "1.0E7"),
        (Types.DOUBLE(), 9999999.5, "9999999.5"),
        (Types.DOUBLE(), 0.001, "0.001"),
        (Types.DOUBLE(), 1e-4, "1.0E-4"),
        (Types.DOUBLE(), -123456789.125, "-1.23456789125E8"),
        (Types.DOUBLE(), -0.0, "-0.0"),
        (Types.DOUBLE(), float("nan"), "NaN"),
        (Types.DOUBLE(), float("inf"), "Infinity"),
        (Types.BIG_INT(), 10**30, "1" + "0" * 30),
        (Types.BIG_DEC(), Decimal("1E+3"), "1E+3"),
        (Types.BIG_DEC(), Decimal("1.50"), "1.50"),
        (Types.SQL_DATE(), dt.date(2021, 1, 9), "2021-01-09"),
        (Types.SQL_TIME(), dt.time(12, 0, 0, 123000), "12:00:00"),
        (Types.SQL_TIMESTAMP(), dt.datetime(2021, 1, 9, 12, 0, 0, 11000), "2021-01-09 12:00:00.011"),
        (Types.SQL_TIMESTAMP(), dt.datetime(2021, 1, 9), "2021-01-09 00:00:00.0"),
        (LocalTimeTypeInfo(LOCAL.LOCAL_DATE_TIME), dt.datetime(2021, 1, 9, 12), "2021-01-09T12:00"),
        (LocalTimeTypeInfo(LOCAL.LOCAL_TIME), dt.time(12, 0, 1, 500000), "12:00:01.500"),
        (Types.INSTANT(), Instant.of_epoch_milli(1500), "1970-01-01T00:00:01.500Z"),
        (Types.LIST(Types.INT()), [1, 2], "[1, 2]"),
        (Types.BASIC_ARRAY(Types.STRING()), ["a", None], "[a, null]"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"a\xff", "[97, -1]"),
        (Types.MAP(Types.STRING(), Types.BOOLEAN()), {"a": True, "b": None}, "{a=true, b=null}"),
        (Types.TUPLE([Types.STRING(), Types.LONG()]), ("a", 1), "(a,1)"),
        (Types.TUPLE([Types.STRING(), Types.LIST(Types.INT())]), (None, [1, 2]), "(null,[1, 2])"),
        (Types.ROW([Types.STRING(), Types.BOOLEAN()]), Row("a", True), "+I[a, true]"),
        (Types.ROW([Types.STRING(), Types.DOUBLE()]), Row("a", None), "+I[a, null]"),
        (Types.ROW([Types.INT()]), Row.of_kind(RowKind.DELETE, 1), "-D[1]"),
        (Types.ROW_NAMED(["x", "y"], [int, Types.ROW([str])]), Row(y=Row("q"), x=1), "+I[1, +I[q]]"),
        (Types.ROW([Types.PICKLED_BYTE_ARRAY()]), Row(bytearray(b"hi")), "+I[[104, 105]]"),
        (ExternalTypeInfo(Types.ROW([Types.INT()])), Row(1), "+I[1]"),
        (Types.PICKLED_BYTE_ARRAY(), ("a", True, None), "('a', True, None)"),
        (None, ("a", True, None), "('a', True, None)"),
    ],
)
def test_a_record_of_a_declared_type_is_written_as_java_writes_it(type_info: Any, value: Any, text: str) -> None:
    assert java_text(type_info)(value) == text
    assert Encoder.simple_string_encoder().for_stream_type(type_info).encode(value) == f"{text}\n".encode()


def test_none_is_null_only_with_a_declared_type() -> None:
    assert java_text(Types.STRING())(None) == "null"
    assert java_text(None)(None) == "None"


def test_print_writes_rows_as_pyflink_itself_does() -> None:
    assert printed_text(Types.ROW([Types.STRING(), Types.BOOLEAN()]))(Row("a", True)) == "+I[a,True]"
    assert printed_text(Types.TUPLE([Types.STRING(), Types.BOOLEAN()]))(("a", True)) == "(a,true)"


def test_the_print_sink_uses_the_type_of_its_stream(capsys: pytest.CaptureFixture[str]) -> None:
    sink = PrintSinkFunction(None, Types.TUPLE([Types.STRING(), Types.BOOLEAN()]))

    class Context:
        def get_index_of_this_subtask(self) -> int:
            return 0

        def get_number_of_parallel_subtasks(self) -> int:
            return 1

    sink.open(Context())  # type: ignore[arg-type]
    sink.invoke(("a", False), None)  # type: ignore[arg-type]
    assert capsys.readouterr().out == "(a,false)\n"
