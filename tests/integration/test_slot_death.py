"""The error of a dead slot names its exit code or its signal, also when it dies while it starts."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from rekindle.datastream import MapFunction
from rekindle.errors import ClusterError, SlotLostError
from rekindle.protocol import Heartbeat, SlotLaunch
from rekindle.runtime.directories import make_directory
from rekindle.spark import slots as placing
from tests.support.environments import environment


class Dies(MapFunction):
    """Ends its process in a way that Python does not notice."""

    def __init__(self, how: int) -> None:
        self.how = how

    def map(self, value: int) -> int:
        if self.how >= 0:
            os._exit(self.how)
        os.kill(os.getpid(), -self.how)
        return value


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (3, "died: it exited with code 3."),
        (
            -signal.SIGKILL,
            "died: it was killed by signal 9 (SIGKILL): by somebody, or by the kernel for lack of memory",
        ),
        (-signal.SIGSEGV, "died: it was killed by signal 11 (SIGSEGV): a native library may have crashed."),
    ],
)
def test_the_error_says_how_the_slot_died(spark: Any, how: int, said: str) -> None:
    env = environment()
    with pytest.raises(SlotLostError) as caught, env.from_collection([1]).map(Dies(how)).execute_and_collect() as rows:
        list(rows)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("kill -9 $$", "ended while it started: it was killed by signal 9 (SIGKILL): by somebody, or by the kernel"),
        ("exit 5", "ended while it started: it exited with code 5."),
        ("echo no such module; exit 1", "ended while it started: no such module"),
    ],
)
def test_a_slot_that_does_not_come_up_has_a_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", os.fspath(python))
    own = make_directory("slot-", "0", os.fspath(tmp_path))
    launch = SlotLaunch("job", "demo", 1, 0, 1, "127.0.0.1", 1, b"secret", Heartbeat(1000, 5000), directory=own.path)
    with pytest.raises(ClusterError) as caught:
        placing._start(launch, (own.lock,), None)
    own.release_lock()
    assert said in str(caught.value)
