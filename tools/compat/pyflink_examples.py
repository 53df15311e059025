"""Runs PyFlink's example programs and ours for PyFlink on a real PyFlink, and records what they print.

`make test` runs the same programs here and compares (tests/integration/test_pyflink_programs.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.compat.pyflink.environment import PyFlinkMissingError, example_programs, pyflink_python
from tools.compat.pyflink.programs import PROGRAMS, RECORDED, outputs_of, source_of

_RUNNER = Path(__file__).parent / "pyflink" / "run_programs.py"


def main(arguments: Sequence[str]) -> int:
    """Record the programs that are named, or all; the status is 1 when one fails on PyFlink."""
    chosen = [name for name in PROGRAMS if not arguments or any(part in name for part in arguments)] or list(PROGRAMS)
    try:
        sources = {name: source_of(name, example_programs()) for name in chosen}
        python = pyflink_python()
    except PyFlinkMissingError as error:
        print(f"compat: {error}", file=sys.stderr)
        return 1
    # PyFlink's workers are started as `python`, wherever that is found first.
    environment = os.environ | {"PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [str(python), str(_RUNNER), *map(str, sources.values())]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    outputs = outputs_of(done.stdout)
    for name, source in sources.items():
        lines = PROGRAMS[name](outputs.get(str(source), []))
        recorded = RECORDED / f"{name}.txt"
        recorded.parent.mkdir(parents=True, exist_ok=True)
        recorded.write_text("".join(f"{line}\n" for line in lines))
        print(f"compat: recorded {len(lines)} lines of {name}")
    if done.returncode:
        print(done.stderr[-3000:], file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
