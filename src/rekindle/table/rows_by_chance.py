"""The rows of a table of the connector `datagen`: each a function of its number, so that a replay makes the same."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from rekindle.common.data_types import (
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    FloatType,
    FractionalType,
    IntegralType,
    LocalZonedTimestampType,
    RowType,
    TimestampType,
)
from rekindle.common.data_types.atomic import UNLIMITED
from rekindle.common.time import Instant
from rekindle.common.types import Row, make_row
from rekindle.config_parsers import parse_duration
from rekindle.errors import GraphError

#: Flink's default length of a text or of bytes without a limit.
_DEFAULT_LENGTH = 100
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_LARGEST_FLOAT, _LARGEST_DOUBLE = 3.4028234663852886e38, 1.7976931348623157e308

#: Makes a value of a row's number and a source of chance.
Make: TypeAlias = Callable[[int, random.Random], Any]


class RowsByChance:
    """Makes the row of a number.

    >>> from rekindle.common.data_types import DataTypes, RowField
    >>> rows = RowsByChance("t", RowType([RowField("n", DataTypes.INT())]), {"fields.n.min": "3", "fields.n.max": "3"})
    >>> rows(0), rows.count
    (Row(n=3), None)
    """

    def __init__(self, table: str, row_type: RowType, options: Mapping[str, str]) -> None:
        self._names = row_type.field_names()
        self._seed = random.SystemRandom().getrandbits(64)
        self._columns = [
            _Column(f"'{field.name}' of the table '{table}'", field.data_type, _settings(field.name, options))
            for field in row_type
        ]
        counts = [column.count for column in self._columns if column.count is not None]
        if "number-of-rows" in options:
            counts.append(_number(f"the table '{table}'", options, "number-of-rows"))
        #: The number of rows; None: the table never ends.
        self.count = min(counts) if counts else None

    def __call__(self, number: int) -> Row:
        chance = random.Random(self._seed ^ number * 0x9E3779B97F4A7C15)
        return make_row(self._names, [column.value(number, chance) for column in self._columns])


class _Column:
    def __init__(self, where: str, data_type: DataType, settings: Mapping[str, str]) -> None:
        self.count: int | None = None
        self._null_rate = float(settings.get("null-rate", 0))
        kind = settings.get("kind", "random")
        if kind == "sequence":
            first, last = _number(where, settings, "start"), _number(where, settings, "end")
            self.count = max(0, last - first + 1)
            as_text = isinstance(data_type, CharType)
            self._make: Make = lambda number, _: str(first + number) if as_text else first + number
        elif kind == "random":
            self._make = _by_chance(where, data_type, settings)
        else:
            raise GraphError(f"The kind of {where} is 'random' or 'sequence', not '{kind}'.")

    def value(self, number: int, chance: random.Random) -> Any:
        if self._null_rate and chance.random() < self._null_rate:
            return None
        return self._make(number, chance)


def _by_chance(where: str, data_type: DataType, settings: Mapping[str, str]) -> Make:
    match data_type:
        case BooleanType():
            return lambda _, chance: chance.random() < 0.5
        case IntegralType():
            bits = _BITS[data_type.sql_name()]
            low, high = _range(where, settings, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            return lambda _, chance: chance.randint(low, high)
        case DecimalType():
            scale, digits = data_type.scale, data_type.precision
            return lambda _, chance: Decimal(chance.randint(0, 10**digits - 1)).scaleb(-scale)
        case FractionalType():
            largest = _LARGEST_FLOAT if isinstance(data_type, FloatType) else _LARGEST_DOUBLE
            first, last = float(settings.get("min", 0)), float(settings.get("max", largest))
            return lambda _, chance: first + chance.random() * (last - first)
        case CharType():
            length = _length(where, data_type, settings)
            return lambda _, chance: f"{chance.getrandbits(4 * length):0{length}x}"
        case BinaryType():
            length = _length(where, data_type, settings)
            return lambda _, chance: chance.randbytes(length)
        case TimestampType() | LocalZonedTimestampType() | DateType():
            return _past(data_type, settings)
    raise GraphError(f"datagen makes no values for {where} of the type {data_type.sql()}: leave the column out.")


def _past(data_type: DataType, settings: Mapping[str, str]) -> Make:
    longest = parse_duration(settings["max-past"]) if "max-past" in settings else dt.timedelta(0)

    def make(_: int, chance: random.Random) -> Any:
        moment = dt.datetime.now() - longest * chance.random()
        if isinstance(data_type, DateType):
            return moment.date()
        if isinstance(data_type, TimestampType):
            return moment
        return Instant.of_epoch_milli(int(moment.timestamp() * 1000))

    return make


def _length(where: str, data_type: CharType | BinaryType, settings: Mapping[str, str]) -> int:
    if "length" in settings:
        return _number(where, settings, "length")
    return data_type.length if data_type.length < UNLIMITED else _DEFAULT_LENGTH


def _settings(column: str, options: Mapping[str, str]) -> dict[str, str]:
    prefix = f"fields.{column}."
    return {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}


def _range(where: str, settings: Mapping[str, str], low: int, high: int) -> tuple[int, int]:
    given = (
        _number(where, settings, "min") if "min" in settings else low,
        _number(where, settings, "max") if "max" in settings else high,
    )
    if given[0] > given[1]:
        raise GraphError(f"The option 'min' of {where} is above 'max'.")
    return given


def _number(where: str, settings: Mapping[str, str], key: str) -> int:
    try:
        return int(settings[key])
    except KeyError:
        raise GraphError(f"A sequence of {where} needs the option '{key}'.") from None
    except ValueError:
        raise GraphError(f"The option '{key}' of {where} is a number, not '{settings[key]}'.") from None
