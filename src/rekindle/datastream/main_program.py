"""A user's program, run as Python would: as `__main__`, with its arguments and its folder first on the path.

In it, `import pyflink` means Rekindle. The one place where programs are run: by the commands of `rekindle`, and by a
replay.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rekindle import pyflink_names
from rekindle.pyflink_names.missing_names import drop_answering_frames


@dataclass(frozen=True)
class MainProgram:
    """A program and its arguments: a file, a folder or archive with `__main__.py`, or the name of a module.

    >>> print(MainProgram("orders.py", ("--day", "2")), MainProgram("shop.orders", is_module=True))
    orders.py -m shop.orders
    """

    name: str
    arguments: tuple[str, ...] = ()
    is_module: bool = False

    def __str__(self) -> str:
        return f"-m {self.name}" if self.is_module else self.name

    @property
    def folder(self) -> str:
        """The folder that the program imports from first, as Python chooses it."""
        if self.is_module:
            return os.getcwd()
        path = os.path.realpath(self.name)
        return path if os.path.isdir(path) else os.path.dirname(path)

    @property
    def is_missing(self) -> bool:
        """Whether there is no such file."""
        return not self.is_module and not os.path.exists(self.name)

    def run(self) -> None:
        """Run the program. All that it raises goes through: its own errors, `SystemExit`, `KeyboardInterrupt`."""
        with self._as_main(), pyflink_names.installed():
            try:
                if self.is_module:
                    runpy.run_module(self.name, run_name="__main__", alter_sys=True)
                else:
                    runpy.run_path(self.name, run_name="__main__")
            except (AttributeError, ImportError) as error:
                drop_answering_frames(error)
                raise

    @contextmanager
    def _as_main(self) -> Iterator[None]:
        """Arguments and path as `python program.py` has them."""
        arguments, path = sys.argv, list(sys.path)
        sys.argv = [self.name, *self.arguments]
        # Python has put the folder of this command there, or the working directory: the program's takes its place.
        own = {"", os.getcwd(), os.path.dirname(os.path.realpath(arguments[0])) if arguments else ""}
        if sys.path and sys.path[0] in own and not sys.flags.safe_path:
            del sys.path[0]
        sys.path.insert(0, self.folder)
        try:
            yield
        finally:
            sys.argv = arguments
            sys.path[:] = path
