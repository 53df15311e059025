"""`python -m rekindle`: the command line. With a program in place of a command it runs that program."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rekindle.cli.command_line import main


def with_run(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command line; `program.py …` means `run program.py …`.

    >>> with_run(["count.py", "--fast"]), with_run(["list"])
    (['run', 'count.py', '--fast'], ['list'])
    """
    return ["run", *arguments] if arguments and arguments[0].endswith(".py") else list(arguments)


if __name__ == "__main__":
    main(with_run(sys.argv[1:]))
