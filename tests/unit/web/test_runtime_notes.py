"""Notes of running drivers: processes that start and end at once share a folder, which goes with the last of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROUNDS, PROCESSES = 150, 3
PROGRAM = f"""if True:
    import os
    from types import SimpleNamespace
    from rekindle.web import runtime_directory
    missing = 0
    for port in range({ROUNDS}):
        runtime_directory.announce(SimpleNamespace(url="http://127.0.0.1:1", token=None, port=port))
        note = runtime_directory.runtime_directory() / f"{{os.getpid()}}-{{port}}.json"
        missing += not note.exists()
        runtime_directory._forget(note, os.getpid())
    print(missing)
"""


def test_a_driver_that_starts_while_others_end_is_noted(tmp_path: Path) -> None:
    environment = os.environ | {"XDG_RUNTIME_DIR": os.fspath(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM]
    drivers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(PROCESSES)]
    assert [driver.communicate(timeout=100)[0].strip() for driver in drivers] == ["0"] * PROCESSES
    assert list(tmp_path.iterdir()) == []
