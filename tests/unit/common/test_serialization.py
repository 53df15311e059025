"""The schemas of text and bytes, and schemas of users."""

from __future__ import annotations

from typing import Any

import cloudpickle
import pytest

from rekindle.common import ByteArraySchema, DeserializationSchema, SerializationSchema, SimpleStringSchema, Types
from rekindle.errors import SerializationError


def test_text_that_does_not_fit_its_character_set() -> None:
    with pytest.raises(SerializationError) as raised:
        SimpleStringSchema().deserialize(b"a\xff")
    assert str(raised.value) == (
        "The message b'a\\xff' is not text in UTF-8: invalid start byte at byte 1; "
        "name its character set with SimpleStringSchema(charset)."
    )
    with pytest.raises(SerializationError, match="has no form in ascii"):
        SimpleStringSchema("ascii").serialize("ä")
    with pytest.raises(SerializationError, match="SimpleStringSchema writes str, not int: 5"):
        SimpleStringSchema().serialize(5)  # type: ignore[arg-type]


def test_bytes_are_bytes() -> None:
    assert ByteArraySchema().serialize(bytearray(b"x")) == b"x"
    assert ByteArraySchema().get_produced_type() == Types.PRIMITIVE_ARRAY(Types.BYTE())
    with pytest.raises(SerializationError, match="ByteArraySchema writes bytes, not int: 5"):
        ByteArraySchema().serialize(5)  # type: ignore[arg-type]


class Numbers(DeserializationSchema, SerializationSchema):
    """Counts up from what `open` has set."""

    def open(self, context: Any = None) -> None:
        self.base = 100

    def deserialize(self, message: bytes) -> int | None:
        return self.base + int(message) if message else None

    def serialize(self, element: int) -> bytes:
        return str(element - self.base).encode()


def test_a_schema_of_ones_own() -> None:
    schema = cloudpickle.loads(cloudpickle.dumps(Numbers()))
    schema.open()
    assert schema.deserialize_all([b"1", b"", b"2"]) == [101, None, 102]
    assert schema.get_produced_type() is None
    assert schema.serialize(107) == b"7"
