"""SIGTERM, as systemd, Kubernetes and `docker stop` send it: a job stops with a savepoint or is cancelled, in time."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.support.running_program import REPOSITORY, RunningProgram, seconds_until_gone
from tests.support.waiting import becomes_true, wait_until

pytestmark = pytest.mark.timeout(400)
DEADLINE_S = 150.0
CANCELLED = 128 + signal.SIGTERM
PATH = {"PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}

#: A job that never ends. Its snapshots wait for a file. After the job the program says how it went on.
ENDLESS = """
import os, sys, threading
from pathlib import Path
from rekindle.common import Configuration
from rekindle.datastream import CheckpointedFunction, MapFunction, SourceFunction, StreamExecutionEnvironment

gate, settings = Path(sys.argv[1]), dict(each.split("=", 1) for each in sys.argv[2:])

class Numbers(SourceFunction):
    ended = False
    def run(self, ctx):
        number = 0
        while not self.ended:
            ctx.collect(number)
            number += 1
            threading.Event().wait(0.01)
    def cancel(self):
        self.ended = True

class Slow(MapFunction, CheckpointedFunction):
    def map(self, value):
        return value
    def initialize_state(self, context):
        pass
    def snapshot_state(self, context):
        while not gate.exists():
            threading.Event().wait(0.01)

def run(name):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings)).set_parallelism(1)
    env.add_source(Numbers()).map(Slow()).filter(lambda n: n == 0).print()
    return env.execute(name)

try:
    run("first")
except Exception as error:
    print("caught", type(error).__name__, flush=True)
finally:
    print("finally", flush=True)
print("next", flush=True)
run("second")
"""


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    (tmp_path / "endless.py").write_text(ENDLESS)
    return tmp_path / "endless.py"


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    return {
        "execution.checkpointing.dir": f"{tmp_path}/checkpoints",
        "execution.checkpointing.savepoint-dir": f"{tmp_path}/savepoints",
        "rekindle.rest.enabled": "false",
    }


def command(program: Path, settings: dict[str, str], *arguments: object) -> RunningProgram:
    options = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
    words = ("run", *options, "-p", "1", os.fspath(program), *map(str, arguments))
    return RunningProgram("command_line_without_spark.py", *words, environment=PATH)


def plain(program: Path, settings: dict[str, str], *arguments: object) -> RunningProgram:
    given = [f"{key}={value}" for key, value in settings.items()]
    words = (os.fspath(program), *map(str, arguments), *given)
    return RunningProgram("execute_without_spark.py", *words, environment=PATH)


def until_running(program: RunningProgram, job: str) -> None:
    running = (f"[{job}] running", f"{job}: running")

    def is_running() -> bool:
        return any(word in line for line in program.errors for word in running)

    becomes_true(lambda: not program.running() or is_running(), DEADLINE_S)
    assert program.running(), program.story()
    assert is_running(), program.story()


def ended(program: RunningProgram) -> int:
    """Its exit status; none of its processes is left."""
    status = program.wait(DEADLINE_S)
    seconds_until_gone(program.processes(), time.monotonic(), DEADLINE_S)
    assert "Traceback" not in program.story()
    return status


def said(program: RunningProgram, pattern: str) -> str:
    """The one line that it has logged about this."""
    found = [match for line in program.errors if (match := re.search(pattern, line))]
    assert len(found) == 1, program.story()
    return found[0].group(found[0].re.groups and 1)


@pytest.mark.parametrize("start", [command, plain], ids=["rekindle run", "python"])
class TestBothWays:
    """`rekindle run program.py` and `python program.py`."""

    def test_a_job_stops_with_a_savepoint(self, start, endless, settings, tmp_path):
        (tmp_path / "gate").touch()
        settings |= {"rekindle.sigterm.action": "savepoint"}
        with start(endless, settings, tmp_path / "gate") as program:
            until_running(program, "first")
            program.send_signal(signal.SIGTERM)
            assert ended(program) == 0, program.story()
            said(program, "SIGTERM: job 'first' stops with a savepoint, within 25 s")
            place = said(program, r"Job 'first' has stopped: its savepoint is at file://(/\S+)\.$")
            assert Path(place, "_metadata").exists()
            assert Path(place).parent == tmp_path / "savepoints"
            assert program.out[-1] == "finally", "the program does not go on to its next job"

    def test_a_job_is_cancelled_and_its_checkpoints_stay(self, start, endless, settings, tmp_path):
        (tmp_path / "gate").touch()
        settings |= {"execution.checkpointing.interval": "20 ms"}
        with start(endless, settings, tmp_path / "gate") as program:
            published = wait_until(lambda: list(tmp_path.rglob("chk-*/_metadata")), "a checkpoint", DEADLINE_S)
            program.send_signal(signal.SIGTERM)
            assert ended(program) == CANCELLED, program.story()
            assert published
            said(program, "SIGTERM: job 'first' is cancelled, and its checkpoints stay")
            assert list(tmp_path.rglob("chk-*/_metadata")), "a deployment must not delete the job's state"
            assert program.out[-1] == "finally"

    def test_when_the_grace_period_is_over_the_job_is_cancelled(self, start, endless, settings, tmp_path):
        settings |= {
            "rekindle.sigterm.action": "savepoint",
            "rekindle.sigterm.grace-period": "500 ms",
            "task.cancellation.timeout": "100 ms",
        }
        with start(endless, settings, tmp_path / "gate") as program:
            until_running(program, "first")
            program.send_signal(signal.SIGTERM)
            assert ended(program) == CANCELLED, program.story()
            said(program, "The savepoint of job 'first' was not complete after 0.5 s: the job is cancelled")

    def test_a_second_signal_ends_at_once(self, start, endless, settings, tmp_path):
        settings |= {"rekindle.sigterm.action": "savepoint", "rekindle.sigterm.grace-period": "1 h"}
        with start(endless, settings, tmp_path / "gate") as program:
            until_running(program, "first")
            program.send_signal(signal.SIGTERM)
            wait_until(lambda: any("SIGTERM: job" in line for line in program.errors), "the first", DEADLINE_S)
            program.send_signal(signal.SIGTERM)
            assert ended(program) in (-signal.SIGTERM, CANCELLED), program.story()


def test_a_savepoint_without_a_directory_is_refused_at_the_start(endless, settings, tmp_path):
    settings |= {"rekindle.sigterm.action": "savepoint"}
    del settings["execution.checkpointing.savepoint-dir"]
    with command(endless, settings, tmp_path / "gate") as program:
        assert program.wait(DEADLINE_S) == 2
        assert "execution.checkpointing.savepoint-dir" in program.story()


def test_a_program_that_sleeps_beside_its_job_ends_too(endless, settings, tmp_path):
    (tmp_path / "gate").touch()
    asynchronous = ENDLESS.replace("return env.execute(name)", "env.execute_async(name)\n    threading.Event().wait()")
    endless.write_text(asynchronous)
    with command(endless, settings, tmp_path / "gate") as program:
        until_running(program, "first")
        program.send_signal(signal.SIGTERM)
        assert ended(program) == CANCELLED, program.story()
        said(program, "SIGTERM: job 'first' is cancelled")


def test_a_program_without_a_job_ends_too(tmp_path):
    (tmp_path / "program.py").write_text("import threading\nprint('here', flush=True)\nthreading.Event().wait()\n")
    with command(tmp_path / "program.py", {}) as program:
        program.wait_for_line("here")
        program.send_signal(signal.SIGTERM)
        assert ended(program) == CANCELLED, program.story()


def test_a_program_with_a_handler_of_its_own_keeps_it(endless, settings, tmp_path):
    handler = "import signal, os\nsignal.signal(signal.SIGTERM, lambda *_: (print('own', flush=True), os._exit(7)))\n"
    endless.write_text(handler + ENDLESS)
    with plain(endless, settings, tmp_path / "gate") as program:
        until_running(program, "first")
        program.send_signal(signal.SIGTERM)
        assert program.wait(DEADLINE_S) == 7, program.story()
        assert program.out[-1] == "own"
