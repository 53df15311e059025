"""Numbers beyond the range of their declared type: refused with the record, or wrapped as PyFlink does."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rekindle.common import Configuration, Row, Types
from rekindle.datastream import StreamExecutionEnvironment
from rekindle.errors import ConfigurationError, TypeMismatchError
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob

PAIR = Types.TUPLE([Types.STRING(), Types.SHORT()])


def environment(out_of_range: str | None = None) -> StreamExecutionEnvironment:
    settings = {} if out_of_range is None else {"rekindle.types.out-of-range": out_of_range}
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings)).set_parallelism(1)


@pytest.mark.parametrize(
    ("type_info", "value", "wrapped"),
    [
        (Types.BYTE(), 128, -128),
        (Types.SHORT(), 43878, -21658),
        (Types.SHORT(), -32769, 32767),
        (Types.INT(), 9147483648, 557549056),
        (PAIR, ("a", 43878), ("a", -21658)),
        (Types.LIST(Types.INT()), [1, 2**31], [1, -(2**31)]),
        (Types.MAP(Types.STRING(), Types.BYTE()), {"a": 300}, {"a": 44}),
        (Types.ROW([Types.INT()]), Row(2**32 + 5), Row(5)),
        (Types.FLOAT(), 1e39, math.inf),
    ],
)
def test_a_number_beyond_its_range_is_refused_or_wrapped(type_info: Any, value: Any, wrapped: Any) -> None:
    with pytest.raises(TypeMismatchError, match="beyond the range of"):
        type_info.fitter()(value)
    assert type_info.fitter(wrap=True)(value) == wrapped


@pytest.mark.parametrize(
    ("type_info", "value"),
    [
        (Types.INT(), 2**31 - 1),
        (Types.SHORT(), -(2**15)),
        (Types.INT(), None),
        (PAIR, ("a", None)),
        (PAIR, None),
        (Types.FLOAT(), 0.5),
        (Types.FLOAT(), math.nan),
    ],
)
def test_what_fits_stays(type_info: Any, value: Any) -> None:
    for wrap in (False, True):
        fitted = type_info.fitter(wrap)(value)
        assert fitted == value or (fitted != fitted and value != value)


@pytest.mark.parametrize(
    "type_info",
    [Types.STRING(), Types.LONG(), Types.DOUBLE(), Types.TUPLE([str, int]), Types.PRIMITIVE_ARRAY(Types.BYTE())],
)
def test_types_without_such_numbers_have_no_conversion(type_info: Any) -> None:
    assert type_info.fitter() is None


def test_a_float_is_rounded_to_32_bits_on_its_way() -> None:
    stream = environment().from_collection([0.1]).map(lambda value: value, output_type=Types.FLOAT()).map(repr)
    assert InProcessJob.of(stream).run() == ["0.10000000149011612"]


def test_an_emitted_number_beyond_its_range_fails_with_the_record() -> None:
    stream = environment().from_collection(["a"]).map(lambda value: (value, 40_000), output_type=PAIR)
    with pytest.raises(OperatorFailure) as failure:
        InProcessJob.of(stream).run()
    assert "('a', 40000) does not fit its declared type Tuple<String, Short>" in str(failure.value.__cause__)
    assert "'rekindle.types.out-of-range'" in str(failure.value.__cause__)


def test_the_setting_asks_for_what_pyflink_does() -> None:
    wrapping = environment("wrap")
    assert InProcessJob.of(wrapping.from_collection([("a", 40_000)], PAIR)).run() == [("a", -25_536)]
    stream = wrapping.from_collection(["a"]).map(lambda value: (value, 40_000), output_type=PAIR)
    assert InProcessJob.of(stream).run() == [("a", -25_536)]
    with pytest.raises(ConfigurationError, match=r"rekindle\.types\.out-of-range"):
        environment("cut")


def test_a_collection_is_refused_before_the_job() -> None:
    with pytest.raises(TypeMismatchError, match=r"from_collection\(\): \('a', 40000\) does not fit"):
        environment().from_collection([("a", 40_000)], PAIR)
