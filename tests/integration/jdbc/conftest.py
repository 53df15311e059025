"""Fixtures of the tests of SQL sinks and sources."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def connections_of_killed_jobs_end() -> Iterator[None]:
    """Free what a killed job leaves: its connections lie in cycles, and a server takes a hundred of them."""
    yield
    gc.collect()
