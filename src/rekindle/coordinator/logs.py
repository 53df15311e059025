"""What slots print and log, on the driver's console."""

from __future__ import annotations

import logging
import sys

from rekindle.protocol import LogLine


def write_log_line(line: LogLine) -> None:
    """Print with the subtask's name, or hand to the logger of the same name."""
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
