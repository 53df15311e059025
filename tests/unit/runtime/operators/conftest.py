"""Fixtures of operator tests: where a sink writes, and that no thread outlives a job."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def no_thread_left():
    """The event loops of a job end, however the job ended."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 10
    while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        left.pop().join(0.1)
    assert not set(threading.enumerate()) - before
