"""What files of a sink are called, in progress and finished."""

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
    """How finished files are called: `<prefix>-<unique>-<number><suffix>`.

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
        """Begins with the prefix `part` and no suffix."""
        return OutputFileConfig.OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """What the names begin with."""
        return self._part_prefix

    def get_part_suffix(self) -> str:
        """What the names end with."""
        return self._part_suffix

    class OutputFileConfigBuilder:
        """Builds an OutputFileConfig."""

        def __init__(self) -> None:
            self.part_prefix = "part"
            self.part_suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """What the names begin with."""
            self.part_prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """What the names end with."""
            self.part_suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            """The configuration."""
            return OutputFileConfig(self.part_prefix, self.part_suffix)


class InProgressName(NamedTuple):
    """What the name of a file in progress tells about who wrote it."""

    name: str
    owner: str
    attempt: int
    subtask: int

    @staticmethod
    def parse(file_name: str) -> InProgressName | None:
        """From a file's name; None if it is none of a sink's.

        >>> InProgressName.parse(".part-1-0.inprogress.00000001-0a1b2c3d.3.1").attempt
        3
        """
        found = _IN_PROGRESS.fullmatch(file_name)
        if found is None:
            return None
        return InProgressName(found["name"], found["owner"], int(found["attempt"]), int(found["subtask"]))


@dataclass(frozen=True)
class Writing:
    """Who writes: staging names carry it, so that leftovers can be told from what still counts (I14, I18)."""

    owner: str
    attempt: int
    subtask: int

    @staticmethod
    def by(context: InitContext) -> Writing:
        """The timeline's subtask; without checkpoints there is no timeline, and the job's id stands for it."""
        owner = _NOT_IN_OWNER.sub("-", context.timeline or context.job_id) or "job"
        return Writing(owner, context.attempt, context.subtask)

    def staging_name(self, name: str) -> str:
        """Hidden from readers until it is committed.

        >>> Writing("0a1b", 3, 1).staging_name("part-1-0")
        '.part-1-0.inprogress.0a1b.3.1'
        """
        return f".{name}.inprogress.{self.owner}.{self.attempt}.{self.subtask}"


def _checked(what: str, text: Any) -> str:
    if not isinstance(text, str) or "/" in text or "\0" in text:
        raise GraphError(f"The {what} of a file's name is a string without '/', not {text!r}.")
    return text
