"""Windows and functions that several tests of windows use."""

from __future__ import annotations

import pytest

from rekindle.datastream import ProcessWindowFunction
from rekindle.datastream.window import TumblingEventTimeWindows

TEN = TumblingEventTimeWindows.of(10)
both = pytest.mark.parametrize("general", [False, True], ids=["fast", "general"])


class Numbers(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, [number for _, number in elements]


def values(events):
    """The values of (value, timestamp) pairs."""
    return [value for value, _ in events]
