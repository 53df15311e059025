"""The range of a timestamp, under PyFlink's names."""

from __future__ import annotations

__all__ = ["MAX_LONG_VALUE", "MIN_LONG_VALUE"]

MAX_LONG_VALUE = 2**63 - 1
MIN_LONG_VALUE = -(2**63)
