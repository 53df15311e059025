"""The environment that tests of the API write their programs in."""

from __future__ import annotations

import pytest

from rekindle.datastream import StreamExecutionEnvironment


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    """An environment as users get it, without any setting."""
    return StreamExecutionEnvironment.get_execution_environment()
