"""Runs the comparisons that are named, or all of them: ``make compat ARGS="pyflink_tests"``.

A comparison is a module of this package with a function `main(arguments) -> int`; arguments follow its name.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules


def comparisons() -> list[str]:
    """The names of the comparisons."""
    return sorted(
        module.name
        for module in iter_modules([str(Path(__file__).parent)])
        if not module.ispkg and module.name != "__main__"
    )


def main(arguments: Sequence[str]) -> int:
    """Run them; the status is that of the worst."""
    known = comparisons()
    named = [name for name in arguments if name in known]
    others = [each for each in arguments if each not in known]
    return max((import_module(f"tools.compat.{name}").main(others) for name in named or known), default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
