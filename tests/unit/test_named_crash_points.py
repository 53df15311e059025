"""Named crash points: the process dies where it was told to, and nowhere else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rekindle
from rekindle import crash_points
from rekindle.crash_points import CRASH_AT, CRASH_FILE, CRASH_ONCE, CrashPoint
from rekindle.errors import ConfigurationError

PROGRAM = """
import sys
from rekindle.crash_points import CrashPoint, reach, this_is_slot
if sys.argv[1] != "driver":
    this_is_slot(int(sys.argv[1]))
for step in range(1, 4):
    reach(CrashPoint.BEFORE_PUBLISH)
    print("before", step, flush=True)
    reach(CrashPoint.AFTER_PUBLISH)
    print("after", step, flush=True)
"""


def process_variables(**variables: str) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if name not in (CRASH_AT, CRASH_ONCE)},
        "PYTHONPATH": str(Path(rekindle.__file__).parents[1]),
        **variables,
    }


def run(process: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, process],
        env=process_variables(**variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("text", "process", "lines"),
    [
        (None, "driver", 6),
        ("before-publish", "driver", 0),
        ("after-publish", "1", 1),
        ("before-publish:3@slot", "1", 4),
        ("after-publish:2@slot1", "1", 3),
        ("after-publish@slot0", "1", 6),
        ("after-publish@driver", "1", 6),
        ("after-publish@slot", "driver", 6),
        ("after-publish:4", "driver", 6),
        ("before-cut", "driver", 6),
    ],
)
def test_the_process_dies_there_and_nowhere_else(text: str | None, process: str, lines: int):
    done = run(process, **({CRASH_AT: text} if text else {}))
    assert len(done.stdout.splitlines()) == lines, done.stderr
    assert done.returncode == (0 if lines == 6 else -signal.SIGKILL)


def test_a_process_that_stands_still_there_goes_on_when_it_is_let():
    command = [sys.executable, "-c", PROGRAM, "driver"]
    variables = process_variables(**{CRASH_AT: "before-publish:2/stop"})
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as process:
        try:
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            process.send_signal(signal.SIGCONT)
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, len(output.splitlines())) == (0, 6)


def test_with_a_file_only_the_first_process_dies(tmp_path: Path):
    variables = {CRASH_AT: "before-publish:2", CRASH_ONCE: str(tmp_path / "died")}
    assert run("0", **variables).returncode == -signal.SIGKILL
    assert (tmp_path / "died").exists()
    assert run("0", **variables).returncode == 0


@pytest.mark.parametrize(("order", "lines"), [("after-publish", 1), ("before-publish@driver", 6), ("before-cut", 6)])
def test_an_order_in_a_file_is_taken_by_the_first_process_that_gets_there(tmp_path: Path, order: str, lines: int):
    file = tmp_path / "order"
    file.write_text(order)
    done = run("0", **{CRASH_FILE: str(file)})
    assert len(done.stdout.splitlines()) == lines, done.stderr
    taken = [each.name for each in tmp_path.iterdir() if each.name != "order"]
    assert (done.returncode, file.exists(), len(taken)) == ((0, True, 0) if lines == 6 else (-signal.SIGKILL, False, 1))
    if taken:
        assert taken[0].removeprefix("order.").isdigit()
        assert run("0", **{CRASH_FILE: str(file)}).returncode == 0


@pytest.mark.parametrize("text", ["publish", "before-publish:0", "before-publish@executor", "before-publish@driver1"])
def test_a_name_that_is_none_is_refused(text: str):
    with pytest.raises(ConfigurationError, match=r"is not a crash point.*before-cut.*after-restore"):
        crash_points.arm(text)


def test_a_bad_name_in_the_environment_does_not_pass_silently():
    done = run("driver", **{CRASH_AT: "nowhere"})
    assert done.returncode == 1
    assert "'nowhere' is not a crash point" in done.stderr


def test_there_is_one_before_and_one_after_each_step_with_a_sentence_each():
    steps = ["beginning", "cut", "snapshot", "upload", "group", "acknowledgement", "publish", "metadata", "notify"]
    steps += ["commit", "restore", "part", "recommit"]
    assert [point.value for point in CrashPoint] == [f"{side}-{step}" for step in steps for side in ("before", "after")]
    assert len({point.sentence for point in CrashPoint}) == len(CrashPoint)
    assert all(point.sentence.endswith(".") for point in CrashPoint)
