"""Runs a program with another default backend: `python on_backend.py rocksdb program.py …` or `… rocksdb -m module …`.

For programs that the tests start as processes of their own, where `--backend` of pytest does not reach.
"""

from __future__ import annotations

import os
import runpy
import sys


def main() -> None:
    """Set the default, then run the program as Python would."""
    from rekindle.config import STATE_BACKEND

    _, backend, *words = sys.argv
    object.__setattr__(STATE_BACKEND, "default", backend)
    if words[0] == "-m":
        sys.path[0] = os.getcwd()
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(words[0])
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
