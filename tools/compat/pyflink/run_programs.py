"""Runs programs one after the other in this process, and so in one JVM, with a line before each that names it.

It runs in two environments: in PyFlink's own, where Rekindle is not installed, and in ours (`--rekindle`).
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback

#: The beginning of the line before a program's output, and of the line after it.
BEGIN, END = "##### program ", "##### end "


def main(arguments: list[str]) -> int:
    """Run the programs; a program that fails is named, and the others run all the same."""
    programs = [each for each in arguments if not each.startswith("--")]
    if "--rekindle" in arguments:
        from rekindle import pyflink_names

        pyflink_names.install()
    failed = 0
    for program in programs:
        say(f"{BEGIN}{program}")
        sys.argv = [program]
        try:
            runpy.run_path(program, run_name="__main__")
        except BaseException:
            traceback.print_exc()
            failed += 1
        say(f"{END}{program}")
    return 1 if failed else 0


def say(line: str) -> None:
    """Write a line below Python's buffers, as the JVM does."""
    sys.stdout.flush()
    os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
