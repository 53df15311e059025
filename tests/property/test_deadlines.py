"""Property tests count examples, not seconds: a busy machine makes them slow, never red."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

#: Of wall-clock time, for the slowest of them at a fiftieth of a core.
PLENTY_S = 600


@given(st.integers())
def test_a_property_test(number: int) -> None:
    assert hypothesis.settings().deadline is None
    assert HealthCheck.too_slow in hypothesis.settings().suppress_health_check


def test_property_tests_have_plenty_of_time(request: pytest.FixtureRequest) -> None:
    found = [item for item in request.session.items if item.get_closest_marker("hypothesis") is not None]
    limits = {item.nodeid: item.get_closest_marker("timeout") for item in found}
    assert any("test_a_property_test" in name for name in limits)
    assert [name for name, limit in limits.items() if limit is None or limit.args[0] < PLENTY_S] == []
