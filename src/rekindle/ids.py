"""Names for the numbers and strings that identify things, so that a type checker keeps them apart."""

from __future__ import annotations

import re
import secrets
from typing import NewType

#: 32 hexadecimal digits, as Flink prints a job id.
JobIdHex = NewType("JobIdHex", str)
#: Counts the execution attempts of a job over all drivers; a fencing token.
AttemptId = NewType("AttemptId", int)
#: One Spark job of an attempt, counted from 1.
EpochId = NewType("EpochId", int)
#: Strictly increasing over the life of a timeline.
CheckpointId = NewType("CheckpointId", int)
#: A slot process of an attempt, counted from 0.
SlotIndex = NewType("SlotIndex", int)
#: A parallel instance of an operator, counted from 0.
SubtaskIndex = NewType("SubtaskIndex", int)

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
