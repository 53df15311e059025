"""Names of a sink's files, both in progress and finished."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from rekindle.datastream.connectors.files.file_paths import is_hidden
from rekindle.datastream.connectors.sink_api import InitContext
from rekindle.errors import GraphError

_IN_PROGRESS = re.compile(r"\.(?P<name>.+)\.inprogress\.(?P<owner>[\w-]+)\.(?P<attempt>\d+)\.(?P<subtask>\d+)")
_NOT_IN_OWNER = re.compile(r"[^\w-]")


class OutputFileConfig:
    """Prefix and suffix of the names of finished files: `<prefix>-<unique>-<number><suffix>`.

    >>> OutputFileConfig.builder().with_part_prefix("orders").with_part_suffix(".csv").build().get_part_suffix()
    '.csv'
    """

    def __init__(self, part_prefix: str, part_suffix: str) -> None:
        self._part_prefix = _checked("prefix", part_prefix)
        self._part_suffix = _checked("suffix", part_suffix)
        if not part_prefix or is_hidden(part_prefix):
            raise GraphError(f"Files that begin with {part_prefix!r} are hidden from readers: name another prefix.")

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Return a builder with the prefix `part` and no suffix."""
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """Return the prefix of the names."""
        return self._part_prefix

    def get_part_suffix(self) -> str:
        """Return the suffix of the names."""
        return self._part_suffix

    class OutputFileConfigBuilder:
        """Builds an OutputFileConfig."""

        def __init__(self) -> None:
            self.part_prefix = "part"
            self.part_suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the prefix of the names."""
            self.part_prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the suffix of the names."""
            self.part_suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            """Return the configuration."""
            return OutputFileConfig(self.part_prefix, self.part_suffix)


class InProgressName(NamedTuple):
    """The parts of the name of a file in progress: final name and writer."""

    name: str
    owner: str
    attempt: int
    subtask: int

    @staticmethod
    def parse(file_name: str) -> InProgressName | None:
        """Parse a file name. Returns None if it is not the name of a sink's file in progress.

        >>> InProgressName.parse(".part-1-0.inprogress.00000001-0a1b2c3d.3.1").attempt
        3
        """
        found = _IN_PROGRESS.fullmatch(file_name)
        if found is None:
            return None
        return InProgressName(found["name"], found["owner"], int(found["attempt"]), int(found["subtask"]))


@dataclass(frozen=True)
class WriterId:
    """Identifies a writer in staging names, so that leftovers of older attempts can be recognised (I14, I18)."""

    owner: str
    attempt: int
    subtask: int

    @staticmethod
    def of(context: InitContext) -> WriterId:
        """Return the id of a subtask's writer. The owner is the timeline or, without checkpoints, the job's id."""
        owner = _NOT_IN_OWNER.sub("-", context.timeline or context.job_id) or "job"
        return WriterId(owner, context.attempt, context.subtask)

    def staging_name(self, name: str) -> str:
        """Return the name of a file in progress. Readers skip it because it begins with a dot.

        >>> WriterId("0a1b", 3, 1).staging_name("part-1-0")
        '.part-1-0.inprogress.0a1b.3.1'
        """
        return f".{name}.inprogress.{self.owner}.{self.attempt}.{self.subtask}"


def _checked(part: str, text: Any) -> str:
    if not isinstance(text, str) or "/" in text or "\0" in text:
        raise GraphError(f"The {part} of a file's name is a string without '/', not {text!r}.")
    return text
