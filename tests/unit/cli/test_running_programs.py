"""`rekindle run` runs a program as Python does, with settings from outside, and ends as the program and its jobs do."""

from __future__ import annotations

import json
import logging
import os
import sys
import textwrap
from concurrent.futures import Future
from pathlib import Path

import pytest

from rekindle.cli import detached_driver, launchers
from rekindle.cli.exit_codes import exit_code_of
from rekindle.cli.quiet_interrupt import without_interrupted_calls
from rekindle.common import completable_future
from rekindle.common.job_status import JobStatus
from rekindle.datastream import find_launcher
from rekindle.errors import JobExecutionError
from tests.support.recorded_jobs import FakeHandle
from tests.unit.cli.conftest import rekindle

SETTINGS = """
from rekindle.common import Configuration
from rekindle.datastream import StreamExecutionEnvironment

def shown(env):
    return dict(sorted(env.get_configuration().to_dict().items()))
"""


@pytest.fixture
def write(tmp_path: Path):
    """Writes a program into a folder of its own."""
    folder = tmp_path / "programs"
    folder.mkdir()

    def written(text: str, name: str = "program.py") -> Path:
        path = folder / name
        path.write_text(textwrap.dedent(text))
        return path

    return written


class JobOfATest(FakeHandle):
    """A job that ends when the test says, or when it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: Future[object] = Future()

    def result(self) -> Future[object]:
        return self.ended

    def status(self) -> JobStatus:
        return JobStatus.FINISHED if self.ended.done() else JobStatus.RUNNING

    def cancel(self) -> Future[None]:
        self.ended.set_result(None)
        return super().cancel()


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> JobOfATest:
    """Every program's job: the engine is the only part that is not real."""
    started = JobOfATest()
    engine = type("Engine", (), {"launch": staticmethod(lambda program: started)})
    monkeypatch.setattr(launchers, "load_engine", lambda: engine)
    return started


class TestAsPythonRunsIt:
    def test_main_arguments_and_imports_from_its_folder(self, write):
        write("WORD = 'beside'", "neighbour_of_program.py")
        program = write(
            """
            import json, sys
            from neighbour_of_program import WORD
            print(json.dumps([__name__, __file__, sys.argv, sys.path[0], WORD, sys.modules["__main__"].WORD]))
            """
        )
        before = sys.argv, list(sys.path), sys.modules["__main__"]
        ended = rekindle("run", program, "--fast", "-p", "7", "--json")
        assert (ended.code, ended.errors) == (0, "")
        name, file, arguments, first, *words = json.loads(ended.out)
        assert (name, file, words) == ("__main__", str(program), ["beside", "beside"])
        assert arguments == [str(program), "--fast", "-p", "7", "--json"]
        assert os.path.samefile(first, program.parent)
        assert before == (sys.argv, list(sys.path), sys.modules["__main__"])
        sys.modules.pop("neighbour_of_program")

    def test_a_folder_and_a_module(self, write, monkeypatch):
        write("print(__name__, __spec__.name)", "module_to_run.py")
        program = write("print('main of a folder')", "__main__.py")
        assert rekindle("run", program.parent).out == "main of a folder\n"
        monkeypatch.chdir(program.parent)
        ended = rekindle("run", "-m", "module_to_run")
        assert (ended.out, ended.errors) == ("__main__ module_to_run\n", "")

    @pytest.mark.parametrize(
        ("code", "exit_code", "errors"),
        [("7", 7, ""), ("None", 0, ""), ("'no input'", 1, "no input\n"), ("True", 1, "")],
    )
    def test_its_exit_code_is_that_of_the_command(self, write, code, exit_code, errors):
        ended = rekindle("run", write(f"import sys; sys.exit({code})"))
        assert (ended.code, ended.errors) == (exit_code, errors)

    def test_a_program_that_is_not_there(self):
        ended = rekindle("run", "no/such/program.py", "--json")
        assert (ended.code, ended.out, ended.errors) == (3, "", "There is no program 'no/such/program.py'.\n")


class TestSettings:
    def test_they_reach_every_environment_and_the_programs_own_win(self, write, tmp_path):
        program = write(
            SETTINGS
            + """
import json
given = StreamExecutionEnvironment.get_execution_environment()
own = Configuration.from_dict({"parallelism.default": "5", "execution.savepoint.path": "own"})
passed = StreamExecutionEnvironment.get_execution_environment(own)
changed = StreamExecutionEnvironment.get_execution_environment().set_parallelism(6)
print(json.dumps([shown(given), shown(passed), changed.get_parallelism()]))
"""
        )
        file = tmp_path / "config.yaml"
        file.write_text("parallelism.default: 1\npipeline: {name: from the file, object-reuse: true}\n")
        options = ("--config", file, "-D", "pipeline.name=by D", "-D", "parallelism.default=2", "-p", 3)
        ended = rekindle("run", *options, "-s", "latest", "-n", "--master", "local[1]", program)
        assert ended.code == 0, ended.errors
        given, passed, changed = json.loads(ended.out)
        assert given == {
            "execution.state-recovery.ignore-unclaimed-state": "true",
            "execution.state-recovery.path": "latest",
            "parallelism.default": "3",
            "pipeline.name": "by D",
            "pipeline.object-reuse": "true",
            "rekindle.master": "local[1]",
        }
        assert passed == {
            **{key: value for key, value in given.items() if key != "execution.state-recovery.path"},
            "execution.savepoint.path": "own",
            "parallelism.default": "5",
        }
        assert changed == 6

    def test_they_are_gone_afterwards(self, write):
        from rekindle.datastream import StreamExecutionEnvironment

        assert rekindle("run", "-D", "pipeline.name=x", write("")).code == 0
        assert StreamExecutionEnvironment.get_execution_environment().get_configuration().to_dict() == {}

    @pytest.mark.parametrize("pair", ["paralelism.default=2", "parallelism.default=many", "parallelism.default"])
    def test_one_that_cannot_be_used_ends_the_command_before_the_program(self, write, pair):
        ended = rekindle("run", "-D", pair, write("print('ran')"))
        assert (ended.code, ended.out, ended.errors.count("\n")) == (2, "", 1)
        assert pair.partition("=")[0] in ended.errors


class TestFailures:
    def test_the_traceback_has_the_programs_frames_only(self, write):
        program = write("def check():\n    return {}['amount']\n\ncheck()\n")
        ended = rekindle("run", program)
        assert ended.code == 1
        assert ended.errors.startswith(f'Traceback (most recent call last):\n  File "{program}", line 4, in <module>')
        assert ended.errors.endswith("KeyError: 'amount'\n")
        assert "runpy" not in ended.errors
        assert "rekindle" not in ended.errors

    def test_what_rekindle_refuses_ends_in_the_programs_line(self, write):
        program = write(SETTINGS + "StreamExecutionEnvironment.get_execution_environment().from_collection('text')\n")
        ended = rekindle("run", program)
        assert ended.code == 1
        lines = ended.errors.splitlines()
        assert lines[1].startswith(f'  File "{program}"')
        assert lines[-1].startswith("rekindle.errors.GraphError: from_collection() takes a list")
        assert "stream_execution_environment.py" not in ended.errors

    def test_a_mistake_in_the_syntax_is_shown_with_its_line(self, write):
        program = write("x = = 1\n")
        ended = rekindle("run", program)
        assert ended.code == 1
        assert f'File "{program}", line 1' in ended.errors
        assert "SyntaxError" in ended.errors

    def test_a_failed_job_shows_its_message_alone(self, write, job):
        job.ended.set_exception(JobExecutionError("Traceback of user code\n\nJob 'x' failed in operator 'y'."))
        ended = rekindle("run", write(SETTINGS + EXECUTE))
        assert (ended.code, ended.errors) == (1, "Traceback of user code\n\nJob 'x' failed in operator 'y'.\n")


EXECUTE = """
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2]).print()
env.execute("counting")
"""


class TestJobs:
    def test_a_job_that_the_program_did_not_wait_for_is_waited_for(self, write, job, monkeypatch):
        program = write(SETTINGS + EXECUTE.replace("execute(", "execute_async("))
        fail = JobExecutionError("failed later")
        monkeypatch.setattr(completable_future, "wait", lambda futures, timeout: job.ended.set_exception(fail))
        ended = rekindle("run", program)
        assert (ended.code, ended.errors) == (1, "failed later\n")

    def test_with_json_stdout_has_the_jobs_only(self, write, job):
        job.ended.set_result(None)
        ended = rekindle("run", "--json", write("print('hello')\n" + SETTINGS + EXECUTE))
        assert ended.code == 0
        assert ended.errors == "hello\n"
        jobs = [{"job-id": str(job.job_id), "name": "counting", "state": "FINISHED", "address": None}]
        assert ended.document == {"exit-code": 0, "jobs": jobs}

    @pytest.mark.parametrize(("raised", "code"), [("KeyboardInterrupt", 130), ("ValueError", 1)])
    def test_an_interrupted_or_failed_program_cancels_its_jobs(self, write, job, raised, code):
        program = write(SETTINGS + EXECUTE.replace("execute(", "execute_async(") + f"\nraise {raised}\n")
        assert rekindle("run", program).code == code
        assert job.asked == [("cancel",)]

    def test_the_engine_is_in_its_place_again_afterwards(self, write, job):
        job.ended.set_result(None)
        assert rekindle("run", write(SETTINGS + EXECUTE)).code == 0
        assert find_launcher._in_front is None


class TestInfo:
    def test_the_plan_is_drawn_and_nothing_is_started(self, write, job):
        program = write("print('hello')\n" + SETTINGS + EXECUTE + "print('not reached')\n")
        ended = rekindle("info", "-p", 2, program)
        assert ended.code == 0
        assert ended.errors == "hello\n"
        assert ended.out.startswith(
            "Job 'counting': STREAMING, 2 tasks, 2 stages, 2 slots\n\n● Source: Collection Source"
        )
        assert job.asked == []
        document = rekindle("info", program, "--json").errors  # what follows the program is the program's
        assert document == "hello\n"
        nodes = rekindle("info", "--json", "-p", 2, program).document["nodes"]
        assert [(node["type"], node["parallelism"]) for node in nodes] == [
            ("Source: Collection Source", 1),
            ("Sink: Print to Std. Out", 2),
        ]

    def test_a_program_that_catches_every_exception_ends_all_the_same(self, write):
        caught = EXECUTE.replace(
            'env.execute("counting")', "try:\n    env.execute('x')\nexcept Exception:\n    print('no')"
        )
        ended = rekindle("info", write(SETTINGS + caught))
        assert (ended.code, ended.errors) == (0, "")

    def test_a_program_without_a_job_has_no_plan(self, write):
        ended = rekindle("info", write("x = 1"))
        assert (ended.code, ended.errors) == (1, "The program ended without execute(): there is no plan.\n")

    def test_a_program_that_fails_shows_its_traceback(self, write):
        ended = rekindle("info", write("1 / 0"))
        assert ended.code == 1
        assert ended.errors.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize(("status", "code"), [(0, 1), (1, 1), (7, 7), (3, 3), (-9, 1)])
def test_a_detached_program_without_a_job_ends_the_command_with_its_own_code(tmp_path, status, code):
    log = tmp_path / "driver.log"
    log.write_text("what it printed\n")
    error = detached_driver._no_job(status, log)
    assert exit_code_of(error) == code
    assert str(error).startswith("what it printed\nThe program ")
    assert str(error).endswith(f"log is {log}.")


def test_calls_that_ctrl_c_interrupts_are_not_logged(caplog):
    py4j = logging.getLogger("py4j.clientserver")
    with without_interrupted_calls():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            logging.exception("while sending a command")
            try:
                raise BrokenPipeError
            except BrokenPipeError:
                py4j.exception("while closing the connection")
        try:
            raise ValueError
        except ValueError:
            py4j.exception("something else")
    assert [record.getMessage() for record in caplog.records] == ["something else"]
    assert not py4j.filters
