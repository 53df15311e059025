"""The canonical bytes of keys (I11): equality, order, and keys that are refused."""

from __future__ import annotations

import enum
import math
import subprocess
import sys
import uuid
from collections import namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from rekindle.common.types import Row, RowKind
from rekindle.errors import InvalidKeyError
from rekindle.runtime.key_bytes import canonical_bytes, owned_key

Point = namedtuple("Point", "x y")


@dataclass(frozen=True)
class User:
    name: str
    score: float = field(compare=False, default=0.0)


@dataclass
class Mutable:
    name: str


@dataclass(frozen=True)
class CaseInsensitive:
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CaseInsensitive) and self.name.lower() == other.name.lower()

    def __hash__(self) -> int:
        return hash(self.name.lower())


class Place(msgspec.Struct, frozen=True):
    city: str


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Name(enum.StrEnum):
    A = "a"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (1, Decimal("1.00")),
        (0, -0.0),
        (0.5, Decimal("0.50")),
        (10**400, Decimal("1e400")),
        (-(10**30), Decimal("-1e30")),
        (math.inf, Decimal("Infinity")),
        (Point(1, "a"), (1.0, "a")),
        (Level.LOW, 1),
        (Name.A, "a"),
        (User("a", 1.0), User("a", 2.0)),
        (datetime(2024, 1, 1, 12, tzinfo=UTC), datetime(2024, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))),
        (time(12, tzinfo=UTC), time(14, tzinfo=timezone(timedelta(hours=2)))),
        (Row(a=1, b="x"), Row(b="x", a=1)),
        (Row(1, "x"), Row(f0=1, f1="x")),
        (Row(1, "x"), Row(f1="x", f0=1)),
        (Row(*range(11)), Row(**{f"f{i}": i for i in reversed(range(11))})),
        (Access.READ | Access.WRITE, Access(3)),
    ],
)
def test_equal_keys_of_different_look_have_the_same_bytes(one: Any, other: Any) -> None:
    assert one == other
    assert hash(one) == hash(other)
    assert canonical_bytes(one) == canonical_bytes(other)


def test_different_keys_have_different_bytes() -> None:
    keys: list[Any] = [
        None, 0, 1, -1, 255, 256, -255, -256, 2**63, 2**64, -(2**64), 2**200, 0.1, Decimal("0.1"), 1e-300, math.inf,
        -math.inf, "", "a", "a\x00", "a\x00b", "\x00", "\x00\xff", b"", b"a", b"\x00", b"\x00\xff", b"\x00\x00",
        (), ((),), ("a",), ("a", "b"), ("ab",), (("a",), "b"), (("a", "b"),), (None,), (1, (2, 3)), ((1, 2), 3),
        datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), date(2024, 1, 1), time(1), time(1, tzinfo=UTC),
        timedelta(1), timedelta.max, timedelta.min, uuid.UUID(int=1), Colour.RED, Colour.BLUE, Access.READ,
        Access.READ | Access.WRITE, User("a"), User("b"), Place("a"), Row("a"), Row(a="a"), Row(b="a"), Row(f1="a"),
        Row.of_kind(RowKind.DELETE, "a"), Row(), Row(("a", "b")), "\ud800", "\U0001f600",
    ]  # fmt: skip
    encoded = [canonical_bytes(key) for key in keys]
    assert len(set(encoded)) == len(keys)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    "ordered",
    [
        [-(2**300), -(2**64), -(2**63), -257, -256, -255, -1, 0, 1, 255, 256, 2**63, 2**64, 2**300],
        [-math.inf, -1.5, -1e-300, 1e-300, 0.5, 1.5, math.inf],
        ["", "\x00", "a", "a\x00", "a\x00b", "ab", "b", "ä", "\U0001f600"],
        [b"", b"\x00", b"\x00\x01", b"\x01", b"\xff"],
        [(), (1,), (1, 2), (1, 3), (2,), (2, 0)],
        [("a", "z"), ("aa", "a"), ("b", "")],
        [datetime(1, 1, 1), datetime(1969, 12, 31), datetime(1970, 1, 1), datetime(9999, 12, 31)],
        [date(1, 1, 1), date(2024, 1, 1), date(9999, 12, 31)],
        [timedelta.min, timedelta(-1), timedelta(0), timedelta(microseconds=1), timedelta.max],
    ],
)
def test_bytes_keep_the_order_within_a_type(ordered: list[Any]) -> None:
    shuffled = ordered[::-1]
    shuffled.sort(key=canonical_bytes)
    assert shuffled == ordered


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (math.nan, "NaN"),
        (Decimal("NaN"), "NaN"),
        ((1, math.nan), "NaN"),
        ([1], "builtins.list"),
        ({"a": 1}, "builtins.dict"),
        ({1}, "builtins.set"),
        (bytearray(b"a"), "bytearray"),
        (("a", [1]), "builtins.list"),
        (Mutable("a"), "Mutable"),
        (CaseInsensitive("a"), "its own __eq__"),
        (1j, "complex"),
        (object(), "builtins.object"),
        (range(3), "range"),
        (Decimal("1e100000"), "digits"),
        (datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")), "exists twice"),
        (datetime(2024, 3, 31, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")), "not at all"),
    ],
)
def test_other_keys_are_refused_by_name(key: Any, words: str) -> None:
    with pytest.raises(InvalidKeyError, match=words):
        canonical_bytes(key)


def test_a_subclass_that_compares_otherwise_is_refused() -> None:
    class Loose(str):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, str) and self.lower() == other.lower()

        def __hash__(self) -> int:
            return hash(self.lower())

    with pytest.raises(InvalidKeyError, match=r"convert it with str"):
        canonical_bytes(Loose("A"))


def test_the_engine_owns_a_copy_of_a_row() -> None:
    row = Row(a=1)
    owned = owned_key(row)
    row["a"] = 2
    assert owned == Row(a=1)
    assert owned_key("text") == "text"


def test_another_process_computes_the_same_key_groups() -> None:
    program = (
        "from rekindle.runtime.key_hash import key_group\n"
        "print([key_group(k, 32768) for k in ('a', 1, -1, 2**70, 0.5, None, ('a', 1), b'x')])"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
    # Checkpoints hold state by key group: these numbers must never change.
    assert seen == {"[15939, 31161, 1606, 22162, 27340, 6914, 32718, 19739]\n"}
