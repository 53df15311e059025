"""Numbers as Java writes them: `3.0E38`, `NaN`, `-Infinity`."""

from __future__ import annotations

import math
from decimal import Decimal

from rekindle.common.type_system.number_ranges import as_float32

_LARGEST_PLAIN, _SMALLEST_PLAIN = 1e7, 1e-3  # between them Java writes a float without an exponent
_FLOAT_DIGITS = 9  # of a float of 32 bits


def double_text(value: float) -> str:
    """Return the text of a DOUBLE.

    >>> [double_text(value) for value in (1, 1e7, 0.0001, -2.5e-10, 2e-308, float("nan"), float("-inf"))]
    ['1.0', '1.0E7', '1.0E-4', '-2.5E-10', '2.0E-308', 'NaN', '-Infinity']
    """
    return _text(float(value), repr(float(value)))


def float_text(value: float) -> str:
    """Return the text of a FLOAT, with as many digits as 32 bits hold.

    >>> float_text(3e38), float_text(0.1), float_text(0.10000000149011612), float_text(16777216.0)
    ('3.0E38', '0.1', '0.1', '1.6777216E7')
    """
    return _text(float(value), _shortest_float32(float(value)))


def _text(value: float, shortest: str) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(shortest).as_tuple()
    minus = "-" if sign else ""
    if value == 0:
        return f"{minus}0.0"
    text = "".join(map(str, digits)).rstrip("0")
    before = len(digits) + int(exponent)  # the place of the decimal point
    if _SMALLEST_PLAIN <= abs(value) < _LARGEST_PLAIN:
        if before <= 0:
            return f"{minus}0.{'0' * -before}{text}"
        text = text.ljust(before, "0")
        return f"{minus}{text[:before]}.{text[before:] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{before - 1}"


def _shortest_float32(value: float) -> str:
    """The fewest digits that give the same float of 32 bits."""
    exact = as_float32(value)
    if math.isfinite(exact):
        for digits in range(_FLOAT_DIGITS):
            text = f"{exact:.{digits}e}"
            if as_float32(float(text)) == exact:
                return text
    return repr(value)
