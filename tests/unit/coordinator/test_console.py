"""The driver's console: lines of slots in any encoding, and the progress line on a terminal and elsewhere."""

from __future__ import annotations

import io
import sys

import pytest

from rekindle.coordinator.console import Progress, write_log_line
from rekindle.coordinator.epoch_rules import EpochSummary
from rekindle.coordinator.job_events import EpochCounted, FunctionsOpened, JobEnded, JobShown
from rekindle.protocol import LogLine
from rekindle.testing import ManualClock


def test_a_console_that_is_not_utf_8_gets_an_escape(monkeypatch: pytest.MonkeyPatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    write_log_line(LogLine("Map (1/2)", "stdout", 0, "", "grün"))
    assert raw.getvalue() == b"[Map (1/2)] gr\\xfcn\n"


# -- progress ----------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(mode: str, stream: io.StringIO) -> str:
    clock = ManualClock(2_000)
    line = Progress("orders", mode, clock, stream)
    line.on_event(FunctionsOpened())
    for epoch in (1, 2, 3):
        clock.advance(4000)
        line.on_event(EpochCounted(EpochSummary(epoch, 4000.0, 40_000, 400, 7_500, False)))
    line.on_event(JobEnded())
    return stream.getvalue()


def test_plain_lines_where_there_is_no_terminal():
    assert run("auto", io.StringIO()).splitlines() == [
        "orders: running",
        "orders: epoch 2 · in 10,000/s (80,000) · out 100/s (800) · watermark lag 2.5 s",
        "orders: 120,000 records in, 1,200 out, 3 epochs, 12.0 s",
    ]


def test_one_line_that_is_written_again_on_a_terminal():
    text = run("auto", Terminal())
    assert text.count("\n") == 1
    assert text.count("\r\x1b[K") == 4
    assert text.endswith("orders: 120,000 records in, 1,200 out, 3 epochs, 12.0 s\n")


def test_the_totals_are_those_of_all_attempts():
    stream, clock = io.StringIO(), ManualClock(2_000)
    line = Progress("orders", "plain", clock, stream)
    for _ in range(2):
        line.on_event(FunctionsOpened())
        for epoch in (1, 2):
            clock.advance(1000)
            line.on_event(EpochCounted(EpochSummary(epoch, 1000.0, 10, 1, 7_500, False)))
        clock.advance(500)
    line.on_event(JobEnded())
    assert stream.getvalue().splitlines()[-1] == "orders: 40 records in, 4 out, 4 epochs, 5.0 s"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["file", "terminal"])
def test_the_link_to_the_job_is_printed_once(stream):
    line = Progress("orders", "auto", ManualClock(10_000), stream)
    line.on_event(JobShown("http://127.0.0.1:8081/?token=abc"))
    line.on_event(FunctionsOpened())
    line.on_event(FunctionsOpened())
    assert stream.getvalue().count("orders: running, http://127.0.0.1:8081/?token=abc\n") == 1
    assert stream.getvalue().count("token") == 1


def test_progress_that_is_off_writes_nothing():
    assert run("off", Terminal()) == ""


def test_an_idle_job_says_nothing():
    stream = io.StringIO()
    clock = ManualClock(0)
    line = Progress("orders", "plain", clock, stream)
    line.on_event(FunctionsOpened())
    for epoch in range(1, 10):
        clock.advance(6000)
        line.on_event(EpochCounted(EpochSummary(epoch, 1.0, 1 if epoch == 2 else 0, 0, None, False)))
    assert stream.getvalue().splitlines() == ["orders: running", "orders: epoch 2 · in 0/s (1) · out 0/s (0)"]


def test_no_lag_before_the_first_and_after_the_last_watermark():
    stream = io.StringIO()
    clock = ManualClock(0)
    line = Progress("orders", "plain", clock, stream)
    line.on_event(FunctionsOpened())
    for watermark in (-(2**63), 2**63 - 1, None):
        clock.advance(6000)
        line.on_event(EpochCounted(EpochSummary(1, 1.0, 1, 1, watermark, False)))
    assert "lag" not in stream.getvalue()
