"""What the builder of the HBase sink refuses, the checks of mutations, and the words of errors."""

from __future__ import annotations

from typing import Any

import pytest

from rekindle.common import Duration
from rekindle.datastream.connectors.hbase import Delete, HBaseSink, Put, TimestampMode
from rekindle.datastream.connectors.hbase.mutations import MutationCheck
from rekindle.datastream.connectors.hbase.thrift_errors import described, java_text, refusal
from rekindle.errors import ConnectorError, RekindleError


def builder() -> Any:
    return HBaseSink.builder().set_thrift_servers("a:1, b:2").set_table("orders").set_converter(lambda value: None)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: HBaseSink.builder().set_table("t").set_converter(print).build(), "set_thrift_servers()"),
        (lambda: HBaseSink.builder().set_thrift_servers("a").set_converter(print).build(), "set_table()"),
        (lambda: HBaseSink.builder().set_thrift_servers("a").set_table("t").build(), "set_converter()"),
        (lambda: HBaseSink.builder().set_thrift_servers("a:b"), "such as 'host:9090, other:9090', not 'a:b'"),
        (lambda: HBaseSink.builder().set_thrift_servers("a:70000"), "not 'a:70000'"),
        (lambda: HBaseSink.builder().set_converter(3), "an object with convert(value), not 3"),
        (lambda: HBaseSink.builder().set_timestamp_mode("fenced"), "a TimestampMode, not 'fenced'"),  # type: ignore[arg-type]
        (lambda: HBaseSink.builder().set_buffer_flush_max_mutations(0), "1 or more, not 0"),
        (lambda: HBaseSink.builder().set_buffer_flush_interval(-1), "0 or more, not -1"),
        (lambda: HBaseSink.builder().set_retry_timeout_ms(0), "1 or more, not 0"),
        (lambda: HBaseSink.builder().set_connection_option("host", "x"), "compat, protocol"),
        (lambda: HBaseSink.builder().set_table(b"t"), "the name of a table, not b't'"),  # type: ignore[arg-type]
    ],
)
def test_the_builder_refuses_with_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(RekindleError) as caught:
        make()
    assert sentence in str(caught.value)


def test_the_builder_sets_everything() -> None:
    made = builder().set_timestamp_mode(TimestampMode.EVENT_TIME).set_buffer_flush_max_mutations(7)
    made.set_buffer_flush_max_size_in_bytes(8).set_buffer_flush_interval(Duration.of_seconds(9))
    made.set_call_timeout_ms(10).set_start_timeout_ms(11).set_retry_timeout_ms(12).set_write_ahead_log(False)
    settings = made.set_connection_option("transport", "framed").build()._settings
    assert (settings.mode, settings.max_mutations, settings.max_bytes, settings.interval_ms) == (
        TimestampMode.EVENT_TIME,
        7,
        8,
        9000,
    )
    thrift = settings.thrift
    assert (thrift.addresses, dict(thrift.options)) == ((("a", 1), ("b", 2)), {"transport": "framed"})
    assert (thrift.call_timeout_ms, thrift.start_timeout_ms, thrift.retry_timeout_ms) == (10, 11, 12)
    assert settings.write_ahead_log is False


@pytest.mark.parametrize(
    ("mutation", "sentence"),
    [
        (Put(b"", {b"f:a": b"1"}), "has the key b'' (bytes): HBase takes 1 to 32767 bytes"),
        (Put(b"x" * 40_000, {b"f:a": b"1"}), "HBase takes 1 to 32767 bytes"),
        (Put("r", {b"f:a": b"1"}), "has the key 'r' (str)"),  # type: ignore[arg-type]
        (Put(b"r", {b"f:a": 1}), "Column b'f:a' of row b'r' of HBase table 't' has the value 1 (int)"),  # type: ignore[dict-item]
        (Put(b"r", {b"f:a": None}), "has the value None (NoneType)"),  # type: ignore[dict-item]
        (Put(b"r", {b"fa": b"1"}), "names the column b'fa' (bytes): name family and qualifier"),
        (Put(b"r", {"f:a": b"1"}), "names the column 'f:a' (str)"),  # type: ignore[dict-item]
        (Put(b"r", {}), "has no columns"),
        (Delete(b"r", [b""]), "names the column b'' (bytes)"),
        (Delete(b"r", ["f"]), "names the column 'f' (str)"),  # type: ignore[list-item]
        (Delete(b"r", [b":a"]), "name family and qualifier"),
        ("r", "returned 'r' (str): return a Put, a Delete"),
    ],
)
def test_what_hbase_cannot_store_is_refused_with_its_name(mutation: Any, sentence: str) -> None:
    with pytest.raises(ConnectorError) as caught:
        MutationCheck(lambda table, column, row: None)(mutation, "t")
    assert sentence in str(caught.value)


class _Answer(Exception):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.message = text.encode()


def test_of_a_java_exception_only_the_telling_words_are_shown() -> None:
    error = _Answer(
        "org.apache.hadoop.hbase.client.RetriesExhaustedException: no server\n\tat org.apache.Foo(Foo.java:1)"
    )
    assert described(error) == "RetriesExhaustedException: no server"
    assert "\tat" in java_text(error)
    assert refusal(error, "t") is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("org.apache.hadoop.hbase.TableNotFoundException: t", "there is no table 't'"),
        ("x.NoSuchColumnFamilyException: Column family q does not exist in region", "no column family 'q'"),
        ("x.AccessDeniedException: no", "grant the right"),
        ("java.lang.IllegalArgumentException: KeyValue size too large", "hbase.client.keyvalue.maxsize"),
        ("Internal error processing scannerOpenWithScan", "correct set_filter()"),
        ("x.TableNotEnabledException: t is disabled", "enable it"),
    ],
)
def test_what_hbase_refuses_for_good_is_not_tried_again(text: str, sentence: str) -> None:
    assert sentence in str(refusal(_Answer(text), "t"))
