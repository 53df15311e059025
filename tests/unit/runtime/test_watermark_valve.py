"""The watermark of a task: the minimum over its channels, with idleness and the end of input (I6)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rekindle.runtime.watermarks import WatermarkValve

A, B = (0, 0), (0, 1)


def test_the_slowest_channel_decides():
    valve = WatermarkValve([A, B])
    assert valve.advance(A, 100) is None
    assert valve.advance(B, 50) == 50
    assert valve.advance(B, 70) == 70
    assert valve.advance(B, 120) == 100


def test_time_never_goes_back():
    valve = WatermarkValve([A])
    assert valve.advance(A, 10) == 10
    assert valve.advance(A, 5) is None
    assert valve.current == 10


def test_an_idle_channel_is_not_waited_for():
    valve = WatermarkValve([A, B])
    valve.advance(A, 100)
    valve.advance(B, 10)
    assert valve.idle(B) == 100
    assert not valve.all_idle
    valve.idle(A)
    assert valve.all_idle


def test_a_channel_that_wakes_up_late_counts_again_once_it_has_caught_up():
    valve = WatermarkValve([A, B])
    valve.advance(A, 100)
    valve.advance(B, 10)
    valve.idle(B)
    valve.active(B)
    assert valve.advance(A, 110) == 110, "B is behind: it must not hold time back"
    assert valve.advance(B, 115) is None, "B has caught up and A decides again"
    assert valve.advance(A, 200) == 115


def test_a_channel_that_counts_goes_on_to_count_behind_the_others():
    """After a restore at another parallelism the task's watermark may be ahead of its channels."""
    valve = WatermarkValve([A, B])
    valve.seek([100, []])
    assert valve.advance(A, 50) is None
    assert valve.advance(B, 1_000) is None
    assert valve.advance(A, 200) == 200


def test_when_the_last_channel_goes_idle_the_furthest_one_decides():
    valve = WatermarkValve([A, B])
    valve.advance(A, 100)
    valve.advance(B, 10)
    assert valve.idle(A) is None, "B still decides"
    assert valve.idle(B) == 100, "nobody is left to wait for"
    assert valve.current == 100
    assert valve.idle(B) is None


def test_a_channel_behind_the_others_that_goes_idle_last_changes_nothing():
    valve = WatermarkValve([A, B])
    valve.advance(A, 100)
    valve.advance(B, 10)
    assert valve.idle(B) == 100
    valve.active(B)
    valve.advance(A, 110)
    assert valve.idle(A) is None
    assert valve.idle(B) is None
    assert valve.current == 110


def test_the_furthest_channel_is_that_of_the_input_that_goes_idle_last():
    left, right = (0, 0), (1, 0)
    valve = WatermarkValve([left, right], {0: 0, 1: 1})
    valve.advance(left, 100)
    valve.advance(right, 10)
    valve.idle(left)
    assert valve.idle(right) is None
    assert valve.current == 10


def test_the_end_needs_every_channel():
    valve = WatermarkValve([A, B])
    assert not valve.end(A)
    assert valve.end(B)


@given(st.lists(st.tuples(st.sampled_from([A, B, (1, 0)]), st.integers(-100, 100)), max_size=60))
def test_without_idleness_it_is_the_minimum_of_the_maxima(events):
    channels = [A, B, (1, 0)]
    valve = WatermarkValve(channels)
    highest = dict.fromkeys(channels, -(2**63))
    for channel, watermark in events:
        valve.advance(channel, watermark)
        highest[channel] = max(highest[channel], watermark)
    assert valve.current == min(highest.values())
