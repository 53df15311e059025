"""The driver's console: the progress line, and the lines that slots print and log."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

from rekindle.clock import Clock
from rekindle.coordinator import closed_output
from rekindle.coordinator.driver_log import driver_log
from rekindle.coordinator.epoch_rules import EpochSummary
from rekindle.coordinator.job_events import EpochCounted, FunctionsOpened, JobEnded, JobEvent, JobShown
from rekindle.protocol import LogLine


def write_log_line(line: LogLine) -> None:
    """Print a slot's line with the subtask's name, or pass it to the logger of the same name."""
    if line.stream == "log":
        logger = logging.getLogger(line.logger or "rekindle.user")
        logger.log(line.level, "[%s] %s", line.source, line.text)
        return
    stream = sys.stdout if line.stream == "stdout" else sys.stderr
    label = f"[{line.source}] " if line.source else ""
    lines = "".join(f"{label}{text}\n" for text in line.text.split("\n"))
    try:
        stream.write(lines)
    except UnicodeEncodeError:  # a console that is not UTF-8 must not end the job
        encoding = stream.encoding or "ascii"
        stream.write(lines.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


_PLAIN_EVERY_S = 5.0
_LIVE_EVERY_S = 0.2
#: Watermarks beyond these mean "none yet" and "end of time" and have no lag.
_SANE_MS = 2**62
_DAY_S = 86_400


class Progress:
    """Shows records in and out per second, the epoch, and the lag of the watermark."""

    def __init__(self, job_name: str, mode: str, clock: Clock, stream: TextIO | None = None) -> None:
        self._job_name, self._clock = job_name, clock
        self._stream = stream or sys.stderr
        live = mode == "live" or (mode == "auto" and self._stream.isatty())
        self._mode = "off" if mode == "off" else "live" if live else "plain"
        self._link: str | None = None
        self._started: float | None = None
        self._since = self._clock.monotonic()
        self._epochs = 0
        self._records_in = self._records_out = 0  # since the last line
        self._total_in = self._total_out = 0

    def on_event(self, event: JobEvent) -> None:
        """Measure from the first start of the functions on, count what epochs read and write, and tell the totals."""
        match event:
            case JobShown(link):
                self._link = link
            case FunctionsOpened():
                self._begin()
            case EpochCounted(summary):
                self._count(summary)
            case JobEnded():
                self._end()

    def _begin(self) -> None:
        first, self._since = self._started is None, self._clock.monotonic()
        if self._started is None:
            self._started = self._since
        link = f", {self._link}" if self._link is not None and first else ""
        if self._mode == "plain" or (self._mode == "live" and link):
            self._write(f"{self._job_name}: running{link}\n")

    def _count(self, summary: EpochSummary) -> None:
        self._epochs += 1
        self._records_in += summary.records_in
        self._records_out += summary.records_out
        self._total_in += summary.records_in
        self._total_out += summary.records_out
        elapsed = self._clock.monotonic() - self._since
        # A job with nothing to do has epochs all the same, for its checkpoints: they are no news for a log.
        is_news = self._mode == "live" or self._records_in or self._records_out
        if self._mode != "off" and is_news and elapsed >= (_LIVE_EVERY_S if self._mode == "live" else _PLAIN_EVERY_S):
            self._show(summary, elapsed)

    def _end(self) -> None:
        """Show the totals of all attempts in place of the live line."""
        if self._mode == "off" or self._started is None:
            return
        before = "\r\x1b[K" if self._mode == "live" else ""
        self._write(
            f"{before}{self._job_name}: {self._total_in:,} records in, {self._total_out:,} out, "
            f"{self._epochs:,} epochs, {self._clock.monotonic() - self._started:.1f} s\n"
        )

    def _show(self, summary: EpochSummary, elapsed: float) -> None:
        text = (
            f"{self._job_name}: epoch {summary.epoch:,} · in {self._records_in / elapsed:,.0f}/s ({self._total_in:,})"
            f" · out {self._records_out / elapsed:,.0f}/s ({self._total_out:,}){self._lag(summary.watermark)}"
        )
        self._write(f"\r\x1b[K{text}" if self._mode == "live" else f"{text}\n")
        self._records_in = self._records_out = 0
        self._since = self._clock.monotonic()

    def _lag(self, watermark: int | None) -> str:
        if watermark is None or not -_SANE_MS < watermark < _SANE_MS:
            return ""
        lag_s = (self._clock.wall_ms() - watermark) / 1000
        return f" · watermark lag {lag_s:,.1f} s" if lag_s < _DAY_S else f" · watermark lag {lag_s / _DAY_S:,.0f} days"

    def _write(self, text: str) -> None:
        log = driver_log() if self._mode == "plain" else None
        if log is not None and self._stream is sys.stderr:
            log.line(
                logging.INFO, "rekindle.progress", text.removeprefix(f"{self._job_name}: ").rstrip(), self._job_name
            )
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError) as error:  # a line about progress is no reason for a failure of its own
            if closed_output.is_closed(error):
                closed_output.tell("stderr", error)
