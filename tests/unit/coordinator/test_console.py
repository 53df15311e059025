"""What slots print must reach the console whatever its encoding, and never end a reader."""

from __future__ import annotations

import io
import sys

import pytest

from rekindle.coordinator.console import write_log_line
from rekindle.coordinator.failure_messages import close_failed, output_closed
from rekindle.protocol import LogLine


def test_a_console_that_is_not_utf_8_gets_an_escape(monkeypatch: pytest.MonkeyPatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    write_log_line(LogLine("Map (1/2)", "stdout", 0, "", "grün"))
    assert raw.getvalue() == b"[Map (1/2)] gr\\xfcn\n"


def test_a_closed_output_is_named():
    text = str(output_closed("count", "stdout", BrokenPipeError(32, "Broken pipe")))
    assert text == "Job 'count' cannot write to the program's stdout any more: [Errno 32] Broken pipe."


def test_a_failed_close_starts_with_the_users_traceback():
    text = str(close_failed("count", ["Traceback of the first", "Traceback of the second"]))
    assert text.startswith("Traceback of the first\n")
    assert "'count'" in text
    assert "1 more" in text
