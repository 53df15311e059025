"""What user code prints and logs in a slot goes to the driver's console, with the subtask's name."""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Callable

from rekindle.protocol import LogLine
from rekindle.runtime.failure_report import readable

Send = Callable[[LogLine], None]


class ForwardedStream(io.TextIOBase):
    """Stands for `sys.stdout` or `sys.stderr`: whole lines travel, labelled with the thread's name (the task's)."""

    def __init__(self, send: Send, stream: str) -> None:
        self._send_line = send
        self._stream = stream
        self._partial = threading.local()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return self._write(text, threading.current_thread().name)

    def write_unlabelled(self, text: str) -> None:
        """For lines that carry a label of their own: those of a print sink."""
        self._write(text, "")

    def _write(self, text: str, source: str) -> int:
        pending = getattr(self._partial, "text", "") + text
        *lines, self._partial.text = pending.split("\n")
        if lines:
            self._send_text(source, "\n".join(lines))
        return len(text)

    def _send_text(self, source: str, text: str) -> None:
        self._send_line(LogLine(source, self._stream, 0, "", readable(text)))

    def flush(self) -> None:
        """Send an unfinished line."""
        rest = getattr(self._partial, "text", "")
        if rest:
            self._partial.text = ""
            self._send_text(threading.current_thread().name, rest)


class ForwardingHandler(logging.Handler):
    """Sends log records to the driver, where they are handled by the logger of the same name."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send_line = send

    def emit(self, record: logging.LogRecord) -> None:
        text = readable(self.format(record))
        self._send_line(LogLine(record.threadName or "", "log", record.levelno, record.name, text))


def forward_output(send: Send, level: int = logging.INFO) -> None:
    """Replace the process's output streams and root log handlers."""
    sys.stdout = ForwardedStream(send, "stdout")
    sys.stderr = ForwardedStream(send, "stderr")
    root = logging.getLogger()
    root.handlers[:] = [ForwardingHandler(send)]
    root.setLevel(level)
