"""Poison records, which cannot be decoded: they fail the job, are skipped, or go to a side output."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rekindle.datastream.output_tag import OutputTag
from rekindle.errors import GraphError


class _Choice(Enum):
    FAIL = "fail"
    SKIP = "skip"
    SIDE_OUTPUT = "side output"


@dataclass(frozen=True)
class PoisonRecordHandling:
    """Says what a source does with a record that its deserializer refuses.

    >>> PoisonRecordHandling.skip().skips
    True
    """

    choice: _Choice
    tag: OutputTag | None = None

    @staticmethod
    def fail() -> PoisonRecordHandling:
        """Fail the job with a sentence that names the record's topic, partition and offset. This is the default."""
        return PoisonRecordHandling(_Choice.FAIL)

    @staticmethod
    def skip() -> PoisonRecordHandling:
        """Leave the record out, log a warning, and count it in the metric `numRecordsInErrors`."""
        return PoisonRecordHandling(_Choice.SKIP)

    @staticmethod
    def side_output(tag: OutputTag) -> PoisonRecordHandling:
        """Send the record to a side output as a `KafkaRecord` with its bytes, and count it in `numRecordsInErrors`."""
        if not isinstance(tag, OutputTag):
            raise GraphError(f"PoisonRecordHandling.side_output() takes an OutputTag, not {tag!r}.")
        return PoisonRecordHandling(_Choice.SIDE_OUTPUT, tag)

    @property
    def fails(self) -> bool:
        """Whether such a record fails the job."""
        return self.choice is _Choice.FAIL

    @property
    def skips(self) -> bool:
        """Whether such a record is left out."""
        return self.choice is _Choice.SKIP
