"""The output of commands: results on stdout, for people or as JSON; sentences on stderr."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

#: Where there is no terminal, lines are not cut to its width.
_WIDTH_ELSEWHERE = 240


def console(*, to_stderr: bool = False) -> Console:
    """The console of this moment: tests and redirections may have replaced the streams."""
    from rich.console import Console

    class Own(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))  # Rich would end the process with code 1

    stream = sys.stderr if to_stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_ELSEWHERE
    return Own(stderr=to_stderr, width=width, highlight=False, soft_wrap=False)


def print_json(document: Any) -> None:
    """The only thing on stdout: a document for machines."""
    text = msgspec.json.format(msgspec.json.encode(document, enc_hook=str), indent=2).decode()
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def print_json_line(document: Any) -> None:
    """One document of many, on a line of its own."""
    sys.stdout.write(msgspec.json.encode(document, enc_hook=str).decode() + "\n")
    sys.stdout.flush()


def print_result(document: Any, shown: RenderableType, *, as_json: bool) -> None:
    """A result: as JSON, or as people read it."""
    if as_json:
        print_json(document)
    else:
        console().print(shown, crop=False)  # a line that is longer on purpose is a path to copy


def print_sentence(sentence: str) -> None:
    """One sentence on stderr."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def fields(values: Mapping[str, object]) -> RenderableType:
    """Names and values below each other; a value that is None is left out."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in values.items():
        if value is not None:
            grid.add_row(name, _plain(value))
    return grid


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[str] = ()) -> RenderableType:
    """Rows under a heading; numbers stand at the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(_plain(cell) for cell in row))
    return made


def _plain(value: object) -> Any:
    """A cell: text of users' is shown as it is, never as markup."""
    from rich.text import Text

    return value if isinstance(value, Text) else Text("" if value is None else str(value))


@contextmanager
def stdout_kept_for_the_result() -> Iterator[None]:
    """Inside the block, the prints of the user's program and its children go to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
