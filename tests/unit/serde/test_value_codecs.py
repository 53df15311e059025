"""Codecs for single state values."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.common import Row, Types
from rekindle.common.typeinfo import infer_type_info
from rekindle.errors import SerializationError, TypeMismatchError
from rekindle.serde import value_codec_for


@dataclasses.dataclass
class Account:
    id: str
    balance: int


class Plain:
    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plain) and self.x == other.x

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, 3),
        (str, None),
        (Account, Account("a", 1)),
        (tuple[str, int], ("a", 1)),
        (Types.BIG_INT(), 2**80),
        (Types.ROW_NAMED(["a"], [int]), Row(a=1)),
    ],
)
def test_typed_values(hint: Any, value: Any) -> None:
    codec = value_codec_for(infer_type_info(hint))
    assert codec.name == "msgpack"
    assert codec.decode(codec.encode(value)) == value


@given(st.recursive(st.integers() | st.text("ab"), lambda inner: st.tuples(inner) | st.lists(inner), max_leaves=5))
def test_untyped_builtins_need_no_pickle(value: Any) -> None:
    codec = value_codec_for(None)
    assert codec.name == "tagged"
    assert codec.decode(codec.encode(value)) == value


def test_untyped_classes_need_pickle_and_it_must_be_allowed() -> None:
    strict, lenient = value_codec_for(None), value_codec_for(infer_type_info(list), allow_pickle=True)
    for value in (Plain(1), [Plain(1)], {"a": {"b": Plain(2)}}):
        with pytest.raises(SerializationError, match="Plain"):
            strict.encode(value)
        data = lenient.encode(value)
        assert lenient.decode(data) == value
        with pytest.raises(SerializationError, match="127"):
            strict.decode(data)


def test_what_needs_no_pickle_is_not_pickled_even_where_it_is_allowed() -> None:
    assert value_codec_for(None, allow_pickle=True).encode((1, 2)) == value_codec_for(None).encode((1, 2))


def test_classes_can_be_made_known() -> None:
    codec = value_codec_for(None, types=[Account])
    assert codec.decode(codec.encode([Account("a", 1)])) == [Account("a", 1)]


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(TypeMismatchError, match="Dataclass<Account> was declared"):
        value_codec_for(infer_type_info(Account)).encode(3)
    with pytest.raises(TypeMismatchError, match="does not fit its declared type Long"):
        value_codec_for(infer_type_info(int)).encode(2**70)
    codec = value_codec_for(infer_type_info(int))
    with pytest.raises(TypeMismatchError, match="Expected `int"):
        codec.decode(codec.encode("x"))
    with pytest.raises(SerializationError, match="damaged"):
        codec.decode(b"")
    with pytest.raises(SerializationError, match="damaged"):
        value_codec_for(None).decode(b"\xc1")


@pytest.mark.parametrize(
    ("hint", "values"),
    [
        (int, [3, None, -(2**63)]),
        (Account, [Account("a", 1), None]),
        (tuple[str, int], [("a", 1), ("b", 2)]),
        (Types.BIG_INT(), [2**80, None, 1]),
        (Types.ROW_NAMED(["a"], [int]), [Row(a=1), None]),
        (None, [1, "a", None, 2**70, (1, [2]), {"k": {3}}]),
        (None, [1, "plain", None]),
        (None, ["\ud800"]),
        (None, [Plain(1), 5]),
        (int, []),
    ],
)
def test_many_values_are_written_as_an_array_of_single_ones(hint: Any, values: list[Any]) -> None:
    """The values in a part of a snapshot can be joined from single values, and split again."""
    codec = value_codec_for(None if hint is None else infer_type_info(hint), allow_pickle=True)
    data = codec.encode_all(values)
    assert codec.decode_all(data) == values
    singles = [msgspec.Raw(b"\xc0" if value is None else codec.encode(value)) for value in values]
    assert msgspec.msgpack.encode(singles) == data


def test_one_of_many_values_of_another_type_is_refused() -> None:
    with pytest.raises(TypeMismatchError, match="Dataclass<Account> was declared"):
        value_codec_for(infer_type_info(Account)).encode_all([Account("a", 1), 3])
    with pytest.raises(TypeMismatchError, match="does not fit its declared type Long"):
        value_codec_for(infer_type_info(int)).encode_all([1, 2**70])
    with pytest.raises(SerializationError, match="Plain"):
        value_codec_for(None).encode_all([1, Plain(1)])
    codec = value_codec_for(infer_type_info(int))
    with pytest.raises(TypeMismatchError, match="Expected `int"):
        codec.decode_all(value_codec_for(None).encode_all([1, "x"]))
    for damaged in (b"", b"\xc1", codec.encode(1)):
        with pytest.raises((SerializationError, TypeMismatchError)):
            codec.decode_all(damaged)
        with pytest.raises(SerializationError, match="damaged"):
            value_codec_for(None).decode_all(damaged)


@pytest.mark.parametrize(
    ("hint", "fitting", "wrong"),
    [
        (Types.LONG(), 1, "abc"),
        (Types.LONG(), 1, 1.5),
        (Types.STRING(), "a", 5),
        (Types.TUPLE([Types.STRING(), Types.LONG()]), ("a", 1), ("a", "b")),
        (Types.ROW([Types.LONG()]), Row(1), Row("x")),
        (Types.LIST(Types.LONG()), [1], ["x"]),
        (Types.MAP(Types.LONG(), Types.LONG()), {1: 1}, {1: "x"}),
    ],
)
def test_what_could_not_be_read_again_is_not_written(hint: Any, fitting: Any, wrong: Any) -> None:
    """A checkpoint with it would complete, but could never be restored."""
    codec = value_codec_for(hint)
    assert codec.decode_all(codec.encode_all([fitting, None])) == [fitting, None]
    with pytest.raises(TypeMismatchError, match="does not fit its declared type"):
        codec.encode(wrong)
    with pytest.raises(TypeMismatchError, match="does not fit its declared type"):
        codec.encode_all([fitting, None, wrong])
