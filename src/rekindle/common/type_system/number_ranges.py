"""Numbers in the range and precision of their declared type: BYTE, SHORT, INT, FLOAT.

Python's numbers know no such limits. A number beyond them is refused, or wrapped as PyFlink does.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from rekindle.common.type_system.type_information import Converter
from rekindle.errors import TypeMismatchError

_BITS_OF = {"Byte": 8, "Short": 16, "Integer": 32}
_FLOAT32 = struct.Struct("<f")


def number_fitter(type_name: str, wrap: bool) -> Converter | None:
    """The conversion of a number to one that fits a type, by its name; None: any number of Python's fits.

    >>> number_fitter("Short", wrap=True)(43878), number_fitter("Float", wrap=False)(0.1)
    (-21658, 0.10000000149011612)
    """
    if type_name == "Float":
        return _wrapping_float if wrap else _refusing_float
    bits = _BITS_OF.get(type_name)
    if bits is None:
        return None
    return _wrapping_int(bits) if wrap else _refusing_int(type_name, bits)


def as_float32(value: float) -> float:
    """The nearest float of 32 bits; an infinity for a number beyond their range.

    >>> as_float32(0.1), as_float32(-1e300)
    (0.10000000149011612, -inf)
    """
    try:
        return float(_FLOAT32.unpack(_FLOAT32.pack(value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _refusing_int(type_name: str, bits: int) -> Converter:
    lowest, highest = -(1 << bits - 1), (1 << bits - 1) - 1

    def fit(value: Any) -> Any:
        if type(value) is int and not lowest <= value <= highest:
            raise TypeMismatchError(
                f"{value} is beyond the range of {type_name}, {lowest} to {highest}; declare a larger type, or set "
                "'rekindle.types.out-of-range' to 'wrap' for what PyFlink does"
            )
        return value

    return fit


def _wrapping_int(bits: int) -> Converter:
    half, whole = 1 << bits - 1, 1 << bits

    def fit(value: Any) -> Any:
        return (value + half) % whole - half if type(value) is int else value

    return fit


def _refusing_float(value: Any) -> Any:
    if type(value) is not float:
        return value
    try:
        return _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:
        raise TypeMismatchError(f"{value} is beyond the range of Float; declare Types.DOUBLE()") from None


def _wrapping_float(value: Any) -> Any:
    return as_float32(value) if type(value) is float else value
