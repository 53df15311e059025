"""A program whose output nobody reads any more ends as every other one does: `rekindle run program.py | head -1`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.support.running_program import PROGRAM_VARIABLE, PROGRAMS, REPOSITORY, processes_of, seconds_until_gone

pytestmark = pytest.mark.timeout(150)
DEADLINE_S = 60.0
#: 128 and the number of SIGPIPE.
CLOSED = 141

#: A job that never ends by itself and restarts after every failure.
JOB = """
    import sys
    from rekindle.common import WatermarkStrategy
    from rekindle.datastream import StreamExecutionEnvironment
    from rekindle.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).enable_checkpointing(300)
    source = DataGeneratorSource(lambda n: n, 10**9, RateLimiterStrategy.per_second(50))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", int)
"""
PRINTS = f"{JOB}    numbers.print()\n    env.execute('printing')\n"
SILENT = f"{JOB}    numbers.add_sink(lambda n: None)\n    env.execute('silent')\n"
ONE_LINE = f"{JOB}    numbers.filter(lambda n: n == 0).print()\n    env.execute('one line')\n"
OWN_PRINTS = f"""{JOB}
    with numbers.execute_and_collect() as found:
        for n in found:
            print(n, flush=True)
"""


class Run:
    """`rekindle run` of a program, on this machine without Spark; a test closes its pipes."""

    def __init__(self, folder: Path, program: str, *options: str) -> None:
        path = folder / "program.py"
        path.write_text(textwrap.dedent(program))
        self.id = f"{folder}"
        self.temporary = tempfile.mkdtemp(prefix="rk-test-")  # a short path: slots put unix sockets into it
        own = {PROGRAM_VARIABLE: self.id, "TMPDIR": self.temporary, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}
        command = [os.fspath(PROGRAMS / "command_line_without_spark.py"), "run", *options, os.fspath(path)]
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=os.environ | own,
        )

    @property
    def out(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def errors(self) -> IO[str]:
        assert self.process.stderr is not None
        return self.process.stderr

    def assert_ended(self) -> None:
        """The program has ended as one that a closed pipe ends, and no process of it is left."""
        assert self.process.wait(DEADLINE_S) == CLOSED
        seconds_until_gone(processes_of(self.id), time.monotonic(), DEADLINE_S)

    def close(self) -> None:
        for process in processes_of(self.id):
            process.kill()
        self.process.wait()
        self.out.close()
        self.errors.close()
        shutil.rmtree(self.temporary, ignore_errors=True)


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[list[Run]]:
    started: list[Run] = []
    yield started
    for each in started:
        each.close()


@pytest.mark.parametrize("program", [PRINTS, OWN_PRINTS], ids=["a print sink", "the program's own print"])
def test_a_closed_stdout_ends_the_program_and_says_so(tmp_path: Path, runs: list[Run], program: str) -> None:
    runs.append(run := Run(tmp_path, program, "-D", "rekindle.rest.enabled=false"))
    assert run.out.readline() == "0\n"
    run.out.close()
    run.assert_ended()
    errors = run.errors.read()
    assert "Traceback" not in errors
    assert "restart in" not in errors
    assert "Broken pipe" in errors.splitlines()[-1]


def test_a_closed_stderr_ends_a_program_that_logs(tmp_path: Path, runs: list[Run]) -> None:
    """Every completed checkpoint is a line of the log."""
    runs.append(run := Run(tmp_path, SILENT, "-D", "rekindle.rest.enabled=false", "--log-level", "info"))
    assert any("Completed checkpoint 1 " in line for line in run.errors)
    run.errors.close()
    run.assert_ended()


def test_a_closed_stderr_ends_a_program_that_shows_its_progress(tmp_path: Path, runs: list[Run]) -> None:
    runs.append(run := Run(tmp_path, SILENT, "-D", "rekindle.rest.enabled=false", "-D", "rekindle.progress=live"))
    assert run.errors.read(1) != ""
    run.errors.close()
    run.assert_ended()


def test_a_job_that_stops_with_a_savepoint_needs_no_reader(tmp_path: Path, runs: list[Run]) -> None:
    """SIGTERM to a group of processes ends `tee` behind the program, too."""
    settings = {
        "rekindle.rest.enabled": "false",
        "rekindle.progress": "off",
        "rekindle.sigterm.action": "savepoint",
        "execution.checkpointing.savepoint-dir": f"{tmp_path}/savepoints",
    }
    options = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
    runs.append(run := Run(tmp_path, ONE_LINE, *options))
    assert run.out.readline() == "0\n"
    run.errors.close()
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(DEADLINE_S) == 0
    assert [each.name for each in (tmp_path / "savepoints").glob("*/_metadata")] == ["_metadata"]


def test_other_commands_end_so_too(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PRINTS))
    command = [sys.executable, "-m", "rekindle", "info", os.fspath(program)]
    receiving, sending = os.pipe()
    os.close(receiving)
    try:
        ended = subprocess.run(command, stdout=sending, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(sending)
    assert (ended.returncode, ended.stderr) == (CLOSED, "")
