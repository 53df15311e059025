"""Opens `pdb` where a replay failed: in the user's own frame, with the record at hand."""

from __future__ import annotations

import os
import pdb
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any

import rekindle
from rekindle.graph.python_files import installed_directories, is_below
from rekindle.replay.replay import ReplayOutcome

_ENGINE = os.path.dirname(os.path.abspath(rekindle.__file__)) + os.sep


def debug(outcome: ReplayOutcome, stdin: IO[str] | None = None, stdout: IO[str] | None = None) -> None:
    """Let a person look around where the replay failed; returns when they leave the debugger."""
    assert outcome.cause is not None, "the replay has not failed"
    names = {"record": outcome.record} if outcome.has_record else {}
    debugger = _FailedRecord(names, stdin=stdin, stdout=stdout)
    debugger.reset()
    debugger.interaction(None, outcome.cause.__traceback__)


class _FailedRecord(pdb.Pdb):
    """A debugger that begins in the innermost frame of the user's, and knows further names there."""

    def __init__(self, names: dict[str, Any], **streams: Any) -> None:
        super().__init__(**streams)
        self.prompt = "(replay) "
        self._names = names
        self._began = False
        if streams.get("stdin") is not None:
            self.use_rawinput = False

    def setup(self, f: FrameType | None, tb: TracebackType | None) -> None:
        super().setup(f, tb)
        if self._began:
            return
        self._began = True
        for index in range(len(self.stack) - 1, -1, -1):
            if is_users_own(self.stack[index][0]):
                self.curindex = index
                break
        frame = self.curframe = self.stack[self.curindex][0]
        for name, value in self._names.items():
            frame.f_locals.setdefault(name, value)
        self.curframe_locals = frame.f_locals


def is_users_own(frame: FrameType) -> bool:
    """Whether a frame is of the user's program: neither of the engine nor of an installed package."""
    file = frame.f_code.co_filename
    if file.startswith(("<", _ENGINE)):
        return False
    return not is_below(Path(file), installed_directories())
