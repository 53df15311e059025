"""The environment that tests of plans write their programs in."""

from __future__ import annotations

import pytest

from rekindle.datastream import StreamExecutionEnvironment
from tests.support.environments import environment


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return environment(2)
