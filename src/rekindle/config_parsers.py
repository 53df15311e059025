"""Parsers for the values of settings, in Flink's spelling: a value as the user wrote it to a typed one.

Each raises ValueError with the reason when the value cannot be used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

T = TypeVar("T")

_UNITS_MS: dict[str, float] = {
    unit: factor
    for units, factor in (
        ("ns nano nanos nanosecond nanoseconds", 1e-6),
        ("us µs micro micros microsecond microseconds", 1e-3),
        ("ms milli millis millisecond milliseconds", 1.0),
        ("s sec secs second seconds", 1_000.0),
        ("m min mins minute minutes", 60_000.0),
        ("h hour hours", 3_600_000.0),
        ("d day days", 86_400_000.0),
    )
    for unit in units.split()
}
_UNITS_BYTES = {
    unit: 1024**power
    for power, units in enumerate(
        ("b byte bytes", "k kb kibibytes", "m mb mebibytes", "g gb gibibytes", "t tb tebibytes")
    )
    for unit in units.split()
}
_NUMBER_AND_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zµ]*)")
_ISO_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


def parse_string(raw: Any) -> str:
    """Any value as text; booleans in Flink's spelling."""
    if isinstance(raw, bool):
        return "true" if raw else "false"
    return raw if isinstance(raw, str) else str(raw)


def parse_bool(raw: Any) -> bool:
    """A boolean: true or false, in any case.

    >>> parse_bool("True")
    True
    """
    if isinstance(raw, bool):
        return raw
    text = str(raw).strip().lower()
    if text not in ("true", "false"):
        raise ValueError(f"{raw!r} is neither true nor false")
    return text == "true"


def parse_int(raw: Any) -> int:
    """A whole number."""
    if isinstance(raw, bool) or (isinstance(raw, float) and not raw.is_integer()):
        raise ValueError(f"{raw!r} is not a whole number")
    try:
        return int(raw)
    except (TypeError, ValueError):
        raise ValueError(f"{raw!r} is not a whole number") from None


def parse_float(raw: Any) -> float:
    """A number."""
    try:
        return float(raw)
    except (TypeError, ValueError):
        raise ValueError(f"{raw!r} is not a number") from None


def parse_duration(raw: Any) -> timedelta:
    """A duration in Flink's spelling; a bare number is milliseconds.

    >>> parse_duration("10 s"), parse_duration("500ms"), parse_duration("PT1M30S")
    (datetime.timedelta(seconds=10), datetime.timedelta(microseconds=500000), datetime.timedelta(seconds=90))
    """
    if isinstance(raw, timedelta):
        return raw
    text = str(raw).strip()
    iso = _ISO_DURATION.fullmatch(text.upper())
    if iso and any(iso.groups()):
        return timedelta(**{unit: float(amount) for unit, amount in iso.groupdict().items() if amount})
    found = _NUMBER_AND_UNIT.fullmatch(text.lower())
    if not found or (found.group(2) or "ms") not in _UNITS_MS:
        raise ValueError(f"{raw!r} is no amount of time, such as '500 ms', '10 s', '1 min' or '2 h'")
    return timedelta(milliseconds=float(found.group(1)) * _UNITS_MS[found.group(2) or "ms"])


def parse_size(raw: Any) -> int:
    """A size in bytes, in Flink's spelling; a bare number is bytes.

    >>> parse_size("64mb")
    67108864
    """
    found = _NUMBER_AND_UNIT.fullmatch(str(raw).strip().lower())
    if not found or (found.group(2) or "b") not in _UNITS_BYTES:
        raise ValueError(f"{raw!r} is no amount of memory, such as '512kb', '64mb' or '1gb'")
    return int(float(found.group(1)) * _UNITS_BYTES[found.group(2) or "b"])


def parse_list(raw: Any) -> list[str]:
    """A list in Flink's spellings: `a;b`, `a,b` or `[a, b]`.

    >>> parse_list("a;b"), parse_list("[a, b]"), parse_list(["a"])
    (['a', 'b'], ['a', 'b'], ['a'])
    """
    if isinstance(raw, list | tuple):
        return [str(item) for item in raw]
    text = str(raw).strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    elif text.startswith("- "):
        text = ",".join(line.strip().removeprefix("- ") for line in text.splitlines())
    items = re.split(r"[;,]", text) if not re.search(r";", text) else text.split(";")
    return [item.strip().strip("'\"") for item in items if item.strip()]


def parse_map(raw: Any) -> dict[str, str]:
    """A map in Flink's spellings: `a:1,b:2` or `{a: 1, b: 2}`.

    >>> parse_map("a:1,b:x:y")
    {'a': '1', 'b': 'x:y'}
    """
    if isinstance(raw, Mapping):
        return {str(key): parse_string(value) for key, value in raw.items()}
    text = str(raw).strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    pairs = [pair.partition(":") for pair in text.split(",") if pair.strip()]
    if any(not colon for _, colon, _ in pairs):
        raise ValueError(f"{raw!r} is no map, such as 'a:1,b:2'")
    return {key.strip(): value.strip().strip("'\"") for key, _, value in pairs}


def one_of(*choices: str, **synonyms: str) -> Callable[[Any], str]:
    """Make a parser that accepts only these choices; `synonyms` maps other spellings to them.

    >>> one_of("fixed-delay", fixeddelay="fixed-delay")("FixedDelay")
    'fixed-delay'
    """

    def parse(raw: Any) -> str:
        text = parse_string(raw).strip()
        known = {choice.lower().replace("_", "-"): choice for choice in choices} | synonyms
        found = known.get(text.lower().replace("_", "-"))
        if found is None:
            raise ValueError(f"{raw!r} is none of {', '.join(choices)}")
        return found

    return parse


def optional(parse: Callable[[Any], T]) -> Callable[[Any], T | None]:
    """Make a parser for an option whose default is None."""
    return lambda raw: None if raw is None else parse(raw)


def at_least(minimum: int) -> Callable[[Any], int]:
    """Make a parser for whole numbers from `minimum` up."""

    def parse(raw: Any) -> int:
        value = parse_int(raw)
        if value < minimum:
            raise ValueError(f"{raw!r} is smaller than {minimum}")
        return value

    return parse


def parse_permissions(raw: Any) -> int:
    """File permissions, a mode or octal digits, with which the owner can read and write.

    >>> oct(parse_permissions("640")), oct(parse_permissions(0o600))
    ('0o640', '0o600')
    """
    text = f"{raw:o}" if isinstance(raw, int) else parse_string(raw).strip()
    if not re.fullmatch(r"0?[67][0-7]{2}", text):
        raise ValueError(f"{raw!r} are no permissions of a file that its owner can read and write, such as '600'")
    return int(text, 8)


def in_millis(amount: timedelta) -> int:
    """A duration in whole milliseconds.

    >>> in_millis(timedelta(seconds=2))
    2000
    """
    return amount // timedelta(milliseconds=1)
