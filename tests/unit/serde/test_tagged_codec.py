"""The tagged codec (I20): values are restored exactly, without pickle, and no module is imported by name."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import enum
import math
import pickle
import uuid
import zoneinfo
from collections import OrderedDict, defaultdict
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.common import Duration, Instant, Row, RowKind, Time
from rekindle.errors import SerializationError
from rekindle.serde import register_type, tagged_dumps, tagged_loads

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ZONES = st.none() | st.sampled_from(
    [dt.UTC, dt.timezone(dt.timedelta(hours=-3, minutes=-30)), zoneinfo.ZoneInfo("Europe/Berlin")]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | TEXT
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.datetimes(timezones=ZONES)
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.builds(Instant, st.integers(), st.integers(0, 999_999_999))
)
HASHABLE = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(TEXT, inner, max_size=3)
        | st.dictionaries(HASHABLE, inner, max_size=3)
        | st.sets(HASHABLE, max_size=3)
        | st.builds(lambda a, b: Row(a=a, b=b), inner, inner)
        | st.builds(Row, inner)
    ),
    max_leaves=12,
)


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal, with equal types at every depth (1 == 1.0 == True would hide a loss)."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return len(left) == len(right) and all(
            same(key, other) and same(left[key], right[other]) for key, other in zip(left, right, strict=True)
        )
    return bool(left == right)


@given(VALUES)
def test_everything_comes_back_as_it_was(value: Any) -> None:
    assert same(tagged_loads(tagged_dumps(value)), value)


@given(st.sets(HASHABLE, max_size=5))
def test_the_same_set_gives_the_same_bytes(values: set[Any]) -> None:
    again: set[Any] = set()
    for value in sorted(values, key=repr):  # another order of insertion
        again.add(value)
    assert tagged_dumps(again) == tagged_dumps(values)


@dataclasses.dataclass(frozen=True)
class Offset:
    partition: int
    position: tuple[int, ...] = ()
    made_by_init: int = dataclasses.field(default=0, init=False)


class Named(NamedTuple):
    a: int
    b: Any = None


class Record(msgspec.Struct, frozen=True):
    a: int
    b: Any = None


class Level(enum.IntEnum):
    LOW = 1


class Mode(enum.Flag):
    READ = 1
    WRITE = 2


CLASSES = [Offset, Named, Record, Level, Mode]


@pytest.mark.parametrize(
    "value",
    [
        Offset(1, (2, 3)),
        Named(1, Offset(2)),
        Record(1, {"x": Named(3)}),
        Level.LOW,
        Mode.READ | Mode.WRITE,
        [Level.LOW, (Record(1),)],
        bytearray(b"x"),
        Row.of_kind(RowKind.DELETE, a=(1, 2)),
        Duration.of_seconds(3),
        Time.seconds(3),
        math.inf,
    ],
)
def test_classes_that_are_passed_in(value: Any) -> None:
    again = tagged_loads(tagged_dumps(value, CLASSES), CLASSES)
    assert again == value
    assert type(again) is type(value)


def test_nan_stays_nan() -> None:
    assert math.isnan(tagged_loads(tagged_dumps(math.nan)))


def test_fold_and_zone_of_a_datetime_stay() -> None:
    moment = dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
    again = tagged_loads(tagged_dumps(moment))
    assert (again, again.fold, str(again.tzinfo)) == (moment, 1, "Europe/Berlin")


def test_registered_classes_need_not_be_passed() -> None:
    @register_type
    @dataclasses.dataclass
    class Registered:
        x: int

    assert tagged_loads(tagged_dumps(Registered(1))) == Registered(1)


def test_only_classes_that_are_data_can_be_registered() -> None:
    with pytest.raises(SerializationError, match="neither a dataclass"):
        register_type(threading_like)


class threading_like:
    pass


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, {"a": (1, object())}], r"\$\[1\]\['a'\]\[1\] .*builtins:object"),
        ({"x": Named(1)}, r"\$\['x'\] .*Named; register that class"),
        ({Named(1): 2}, r"\(key Named.*register that class"),
        (defaultdict(int), "collections:defaultdict"),
        ([OrderedDict()], r"\$\[0\].*OrderedDict"),
        ({1: Row(a=[lambda: 1])}, r"\$\[1\]<2>\[0\]\[0\]"),
        (pickle.dumps, "builtins:builtin_function_or_method"),
    ],
)
def test_what_has_no_place_is_named_with_its_path(value: Any, message: str) -> None:
    with pytest.raises(SerializationError, match=message):
        tagged_dumps(value)


def test_a_field_of_a_registered_class_is_part_of_the_path() -> None:
    with pytest.raises(SerializationError, match=r"\$\[0\]\.b\['k'\]"):
        tagged_dumps([Record(1, {"k": object()})], CLASSES)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(SerializationError, match="contains itself"):
        tagged_dumps(loop)


def test_a_class_of_the_data_is_never_looked_up_by_import() -> None:
    data = tagged_dumps(Offset(1), [Offset])
    with pytest.raises(SerializationError, match="Offset, a class that this program has not registered"):
        tagged_loads(data)


def test_pickled_bytes_are_not_read() -> None:
    with pytest.raises(SerializationError, match="may not read extension 127"):
        tagged_loads(msgspec.msgpack.encode(msgspec.msgpack.Ext(127, pickle.dumps(1))))


@given(st.binary(max_size=40))
def test_any_bytes_give_a_value_or_a_serialization_error(data: bytes) -> None:
    with contextlib.suppress(SerializationError):
        value = tagged_loads(data)
        assert tagged_dumps(tagged_loads(tagged_dumps(value))) == tagged_dumps(value)


def test_old_data_loads_after_a_field_came_or_went() -> None:
    @dataclasses.dataclass
    class Version:
        kept: int
        removed: str = ""

    old = tagged_dumps(Version(1, "x"), [Version])

    @dataclasses.dataclass
    class Changed:
        kept: int
        added: list[int] = dataclasses.field(default_factory=list)

    Changed.__module__, Changed.__qualname__ = Version.__module__, Version.__qualname__
    assert tagged_loads(old, [Changed]) == Changed(1, [])

    @dataclasses.dataclass
    class Broken:
        kept: int
        needed: int

    Broken.__module__, Broken.__qualname__ = Version.__module__, Version.__qualname__
    with pytest.raises(SerializationError, match="no field 'needed': give the new field a default"):
        tagged_loads(old, [Broken])


def test_an_enum_member_that_went_away_is_named() -> None:
    data = tagged_dumps(Level.LOW, [Level])

    class Other(enum.Enum):
        HIGH = 2

    Other.__module__, Other.__qualname__ = Level.__module__, Level.__qualname__
    with pytest.raises(SerializationError, match="no member 'LOW' any more"):
        tagged_loads(data, [Other])


def test_plain_values_are_plain_msgpack() -> None:
    value = {"a": [1, 2.5, "x", None, True, b"y"]}
    assert tagged_dumps(value) == msgspec.msgpack.encode(value)
    assert isinstance(tagged_loads(tagged_dumps(Decimal("1.10"))), Decimal)
    assert tagged_loads(tagged_dumps(uuid.UUID(int=1))) == uuid.UUID(int=1)
