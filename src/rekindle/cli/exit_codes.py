"""The exit codes of commands, and the errors that are one sentence for a person."""

from __future__ import annotations

from enum import IntEnum

from rekindle.cli.closed_streams import closed_streams
from rekindle.errors import (
    CheckpointNotFoundError,
    ConfigurationError,
    JavaMissingError,
    MissingFileError,
    OutputClosedError,
    RecordingNotFoundError,
    RekindleError,
)


class ExitCode(IntEnum):
    """The exit codes of commands (docs/guide/command_line.md)."""

    DONE = 0
    #: The job, the program or the request failed; a check found something.
    FAILED = 1
    #: The command line or a setting cannot be used.
    USAGE = 2
    #: There is no such job, checkpoint, operator or file.
    NOT_FOUND = 3
    #: The driver does not answer, or refuses.
    UNREACHABLE = 4
    #: Something has to be installed first.
    MISSING = 5
    #: A replayed task went through all of its recorded input.
    DID_NOT_FAIL = 6
    INTERRUPTED = 130
    #: The reader of the output has gone: 128 and the number of SIGPIPE, as a shell tells it of other programs.
    OUTPUT_CLOSED = 141
    #: SIGTERM, and not every job has a savepoint.
    TERMINATED = 143


class CommandError(RekindleError):
    """A command cannot go on: one sentence, and the exit code, which may be a program's own."""

    def __init__(self, sentence: str, code: int = ExitCode.FAILED) -> None:
        super().__init__(sentence)
        self.code = code


def exit_code_of(error: BaseException) -> int:
    """The exit code that an error ends a command with.

    >>> int(exit_code_of(ConfigurationError("..."))), int(exit_code_of(ValueError()))
    (2, 1)
    """
    match error:
        case CommandError():
            return error.code
        case ConfigurationError():
            return ExitCode.USAGE
        case CheckpointNotFoundError() | MissingFileError() | RecordingNotFoundError():
            return ExitCode.NOT_FOUND
        case JavaMissingError():
            return ExitCode.MISSING
        case KeyboardInterrupt():
            return ExitCode.INTERRUPTED
        case OutputClosedError():
            return ExitCode.OUTPUT_CLOSED
        case BrokenPipeError() if closed_streams():
            return ExitCode.OUTPUT_CLOSED
    return ExitCode.FAILED
