"""The peers' virtual environments: one each, made on demand under ``.cache/bench`` in the clone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

CLONE = Path(__file__).resolve().parents[2]
CACHE = CLONE / ".cache" / "bench"


class NotAvailable(Exception):
    """An engine cannot run here; the message says why and what to do."""


def requirements(peer: str) -> Path:
    return CLONE / "benchmarks" / f"requirements-{peer}.txt"


def python_of(peer: str) -> Path:
    """Return the interpreter of the peer's environment, made anew when its requirements change."""
    directory = CACHE / peer
    interpreter = directory / "bin" / "python"
    wanted = requirements(peer).read_text()
    installed = directory / "requirements-installed.txt"
    if interpreter.exists() and installed.exists() and installed.read_text() == wanted:
        return interpreter
    print(f"Making the environment of {peer} in {directory.relative_to(CLONE)} …", file=sys.stderr, flush=True)
    shutil.rmtree(directory, ignore_errors=True)
    run("venv", peer, [sys.executable, "-m", "venv", str(directory)])
    run("pip install", peer, [str(interpreter), "-m", "pip", "install", "--quiet", "-r", str(requirements(peer))])
    installed.write_text(wanted)
    return interpreter


def run(step: str, peer: str, command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise NotAvailable(
            f"its environment could not be made ({step} for {peer}: {last}); see benchmarks/requirements-{peer}.txt"
        )
