"""`rekindle replay`: finds the recording and the program, reaches the failing record, opens pdb there."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rekindle.checkpoint.recordings import Recording, encode_recording
from rekindle.checkpoint.store.local import LocalStore
from rekindle.cli.command_line import app
from rekindle.datastream.main_program import MainProgram
from rekindle.errors import ReplayError
from rekindle.graph.shipping import CopiedJob
from rekindle.replay import debug, find_recording, replay
from rekindle.replay.job_code import plan_for
from rekindle.replay.job_of_program import with_job_of
from rekindle.replay.replay import ReplayOptions
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.testing import InProcessJob

PROGRAM = """
import sys

from rekindle.common import Configuration
from rekindle.datastream import StreamExecutionEnvironment


def divide(n):
    numerator = 8
    return numerator // (n - LEAST)


LEAST = int(sys.argv[1])
if __name__ == "__main__":
    configuration = Configuration.from_dict({"rekindle.replay.record-input": "true"})
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.from_collection([4, 2, 1, 3]).map(divide).name("divide").set_parallelism(1).print()
    env.execute("quotients")
"""


def failed_recording(program: Path) -> Recording:
    """The recording of the program's job, as a run has left it."""

    def fail(program: object) -> Recording:
        from rekindle.graph.build import build_plan

        job = InProcessJob(build_plan(program, 1))  # type: ignore[arg-type]
        with pytest.raises(OperatorFailure):
            job.run()
        job.kill()
        assert job.recording is not None
        return job.recording

    return with_job_of(MainProgram(str(program), ("2",)), fail)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "quotients.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def checkpoints(tmp_path: Path, program: Path) -> Path:
    """A directory of checkpoints with a recording."""
    folder = tmp_path / "checkpoints"
    store = LocalStore(folder)
    recording = failed_recording(program)
    store.put("quotients/_replay/0000000000007-1-0-0.recording", b"".join(encode_recording(recording)))
    return folder


def run(*words: str, stdin: str = "") -> tuple[int, str]:
    result = CliRunner().invoke(app, ["replay", *words], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_the_failing_record_is_reached_with_the_programs_own_code(checkpoints: Path, program: Path) -> None:
    code, told = run(str(checkpoints), "--program", str(program), "--no-pdb", "--", "2")
    assert code == 0
    assert f'File "{program}", line 10, in divide' in told
    assert "ZeroDivisionError" in told
    assert "Operator 'divide' failed at record 2." in told
    assert "divide" not in vars(sys.modules["__main__"])


def test_every_path_that_a_user_may_name_leads_to_the_recording(checkpoints: Path) -> None:
    job = checkpoints / "quotients"
    paths = [checkpoints, job, job / "00000001-0a1b2c3d" / "chk-7", job / "_replay" / "0000000000007-1-0-0.recording"]
    for path in paths:
        assert find_recording(str(path)).recording.failure.record == "2"
    assert find_recording(checkpoints.as_uri(), subtask=0, operator="divide").recording.subtask == 0
    with pytest.raises(ReplayError, match=r"None of the 1 recordings .* is of subtask 1"):
        find_recording(str(job), subtask=1)


def test_a_directory_without_recordings_says_what_to_set(tmp_path: Path) -> None:
    code, told = run(str(tmp_path), "--shipped")
    assert code == 3
    assert "set rekindle.replay.record-input: true" in told


def test_an_object_store_gets_its_settings(checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, dict[str, str]]] = []

    def opened(url: str, options: Mapping[str, str]) -> LocalStore:
        asked.append((url, dict(options)))
        return LocalStore(checkpoints)

    monkeypatch.setattr(sys.modules[find_recording.__module__], "open_store", opened)
    code, told = run("s3://bucket/checkpoints", "-D", "s3.endpoint=http://127.0.0.1:9000", "--subtask", "5")
    assert code == 3
    assert "None of the 1 recordings below s3://bucket/checkpoints is of subtask 5." in told
    assert asked == [("s3://bucket/checkpoints", {"endpoint": "http://127.0.0.1:9000"})]


def test_a_repaired_program_goes_through(checkpoints: Path, program: Path) -> None:
    code, told = run(str(checkpoints), "--program", str(program), "--", "0")
    assert code == 6
    assert "It went through all of its recorded input" in told
    assert "ZeroDivisionError" in told


def test_machines_get_one_document(checkpoints: Path, program: Path) -> None:
    words = ["replay", str(checkpoints), "--program", str(program), "--json", "--trace", "--", "2"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert (told["failed"], told["operator"], told["record"]) == (True, "divide", "2")
    assert "ZeroDivisionError" in told["traceback"]


def test_a_trace_tells_each_record(checkpoints: Path, program: Path) -> None:
    code, told = run(str(checkpoints), "--program", str(program), "--no-pdb", "--trace", "--", "2")
    assert code == 0
    assert [line.split() for line in told.splitlines()[:3]] == [
        ["1", "divide", "<-", "4"],
        ["Sink:", "Print", "to", "Std.", "Out", "<-", "4"],
        ["2", "divide", "<-", "2"],
    ]


def test_without_a_program_the_command_asks_for_one(checkpoints: Path) -> None:
    code, told = run(str(checkpoints))
    assert code == 2
    assert "--program" in told


def test_another_program_is_refused(checkpoints: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(PROGRAM.replace(".map(divide)", ".uid('other').map(divide)"))
    code, told = run(str(checkpoints), "--program", str(other), "--", "2")
    assert code == 1
    assert "The program has no task that begins with operator" in told
    code, told = run(str(checkpoints), "--program", str(tmp_path / "missing.py"))
    assert code == 3
    assert "There is no program" in told


def test_pdb_opens_in_the_users_frame_with_the_record(checkpoints: Path, program: Path) -> None:
    stored = find_recording(str(checkpoints))
    said = io.StringIO()

    def look(program: object) -> None:
        plan = plan_for(stored.recording, program)  # type: ignore[arg-type]
        with replay(stored.recording, plan, CopiedJob(plan), ReplayOptions()) as outcome:
            debug(outcome, io.StringIO("p numerator, n, record\nq\n"), said)

    with_job_of(MainProgram(str(program), ("2",)), look)
    assert "divide()" in said.getvalue()
    assert "(8, 2, 2)" in said.getvalue()
