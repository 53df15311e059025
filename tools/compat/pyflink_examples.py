"""Runs PyFlink's example programs and ours for PyFlink on a real PyFlink, and records what they print.

`make test` runs the same programs here and compares (tests/integration/test_pyflink_programs.py).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.compat.pyflink.environment import PyFlinkMissingError, example_programs, pyflink_python
from tools.compat.pyflink.programs import ENDLESS, PROGRAMS, RECORDED, outputs_of, plain, source_of

_RUNNER = Path(__file__).parent / "pyflink" / "run_programs.py"
#: PyFlink starts within half a minute, and prints five words a second.
_DEADLINE_S = 240.0


def main(arguments: Sequence[str]) -> int:
    """Record the programs that are named, or all; the status is 1 when one fails on PyFlink."""
    known = [*PROGRAMS, *ENDLESS]
    chosen = [name for name in known if not arguments or any(part in name for part in arguments)] or known
    try:
        sources = {name: source_of(name, example_programs()) for name in chosen}
        python = pyflink_python()
    except PyFlinkMissingError as error:
        print(f"compat: {error}", file=sys.stderr)
        return 1
    ending = {name: source for name, source in sources.items() if name in PROGRAMS}
    failed = _record_all(python, ending) if ending else 0
    for name in sources.keys() - ending.keys():
        failed |= _record_endless(python, name, sources[name])
    return failed


def _record_all(python: Path, sources: Mapping[str, Path]) -> int:
    """Run programs to their end, in one process."""
    command = [str(python), str(_RUNNER), *map(str, sources.values())]
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(python), check=False)
    outputs = outputs_of(done.stdout)
    for name, source in sources.items():
        _record(name, PROGRAMS[name](outputs.get(str(source), [])))
    if done.returncode:
        print(done.stderr[-3000:], file=sys.stderr)
    return done.returncode


def _record_endless(python: Path, name: str, source: Path) -> int:
    """Run a program until it has printed enough, then kill it with its JVM and its workers."""
    compared = ENDLESS[name]
    program = subprocess.Popen(
        [str(python), str(source)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=_environment(python),
        start_new_session=True,
    )
    assert program.stdout is not None
    lines: list[str] = []
    late = threading.Timer(_DEADLINE_S, os.killpg, (program.pid, signal.SIGKILL))
    late.start()
    try:
        for line in program.stdout:
            lines.append(line.rstrip("\n"))
            if len(plain(lines)) >= compared.enough:
                break
    finally:
        late.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        program.stdout.close()
    if len(plain(lines)) < compared.enough:
        print(f"compat: {name} has printed only {len(lines)} lines on PyFlink: {lines[-5:]}", file=sys.stderr)
        return 1
    _record(name, compared.form(plain(lines)))
    return 0


def _environment(python: Path) -> dict[str, str]:
    # PyFlink's workers are started as `python`, wherever that is found first.
    return os.environ | {"PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}", "PYTHONUNBUFFERED": "1"}


def _record(name: str, lines: Sequence[str]) -> None:
    recorded = RECORDED / f"{name}.txt"
    recorded.parent.mkdir(parents=True, exist_ok=True)
    recorded.write_text("".join(f"{line}\n" for line in lines))
    print(f"compat: recorded {len(lines)} lines of {name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
