"""Forwards the output and the log records of user code in a slot to the driver's console, with the subtask's name."""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Callable

from rekindle.protocol import LogLine

Send = Callable[[LogLine], None]


def sendable(text: str) -> str:
    """Return text that UTF-8 can encode: lone surrogates are written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class ForwardedStream(io.TextIOBase):
    """Replaces `sys.stdout` or `sys.stderr`: sends whole lines, labelled with the thread's name (the task's)."""

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
        """Write text that has its own label, such as that of a print sink."""
        self._write(text, "")

    def _write(self, text: str, source: str) -> int:
        pending = getattr(self._partial, "text", "") + text
        *lines, self._partial.text = pending.split("\n")
        if lines:
            self._send_text(source, "\n".join(lines))
        return len(text)

    def _send_text(self, source: str, text: str) -> None:
        self._send_line(LogLine(source, self._stream, 0, "", sendable(text)))

    def flush(self) -> None:
        """Send an unfinished line."""
        rest = getattr(self._partial, "text", "")
        if rest:
            self._partial.text = ""
            self._send_text(threading.current_thread().name, rest)


class ForwardingHandler(logging.Handler):
    """Sends log records to the driver, where the logger of the same name handles them."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send_line = send

    def emit(self, record: logging.LogRecord) -> None:
        text = sendable(self.format(record))
        self._send_line(LogLine(record.threadName or "", "log", record.levelno, record.name, text))


def forward_output(send: Send, level: int = logging.INFO) -> None:
    """Replace the process's output streams and root log handlers by forwarding ones."""
    sys.stdout = ForwardedStream(send, "stdout")
    sys.stderr = ForwardedStream(send, "stderr")
    root = logging.getLogger()
    root.handlers[:] = [ForwardingHandler(send)]
    root.setLevel(level)
