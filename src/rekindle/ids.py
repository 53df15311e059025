"""Job ids: made, and read from text."""

from __future__ import annotations

import re
import secrets
from typing import NewType

#: 32 hexadecimal digits, as Flink prints a job id.
JobIdHex = NewType("JobIdHex", str)

_JOB_ID = re.compile(r"[0-9a-f]{32}")


def new_job_id() -> JobIdHex:
    """A random job id.

    >>> len(new_job_id())
    32
    """
    return JobIdHex(secrets.token_hex(16))


def parse_job_id(text: str) -> JobIdHex:
    """`text` as a job id; ValueError when it is none.

    >>> parse_job_id("00000000000000000000000000000ABC")
    '00000000000000000000000000000abc'
    """
    lowered = text.lower()
    if not _JOB_ID.fullmatch(lowered):
        raise ValueError(f"{text!r} is not a job id: 32 hexadecimal digits are expected.")
    return JobIdHex(lowered)
