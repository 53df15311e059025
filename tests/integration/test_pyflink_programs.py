"""PyFlink programs, byte for byte unchanged, print what a real PyFlink printed.

PyFlink's examples come from its wheel, three longer programs from examples/pyflink. `make compat` recorded the output.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rekindle import pyflink_names
from rekindle.config import EPOCH_INITIAL_RECORDS, EPOCH_MAX_RECORDS
from tools.compat.pyflink.environment import example_programs
from tools.compat.pyflink.programs import PROGRAMS, RECORDED, source_of

#: The first program waits for the session, and for PyFlink's wheel.
DEADLINE_S = 600
#: A watermark follows each epoch: with short ones, as with the pauses in this program, late events are late.
SHORT_EPOCHS = {"own/web_sessions": 30}
#: State of these programs lives for a second of the clock: where a busy machine takes longer, they run again.
WITH_SHORT_LIVED_STATE = {"datastream/state_access", "datastream/event_time_timer"}
MOST_RUNS = 4


@pytest.fixture(scope="module")
def examples() -> Path:
    return example_programs()


@pytest.fixture(autouse=True)
def pyflink() -> Iterator[None]:
    pyflink_names.install()
    yield
    pyflink_names.uninstall()


@pytest.mark.timeout(DEADLINE_S)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_pyflink_program_prints_what_pyflink_prints(
    spark: object,
    examples: Path,
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # All records in the first epoch, unless the program needs watermarks between them.
    records = SHORT_EPOCHS.get(name, 1000)
    for option in (EPOCH_INITIAL_RECORDS, EPOCH_MAX_RECORDS):
        monkeypatch.setitem(option.__dict__, "default", records)
    program = source_of(name, examples)
    monkeypatch.setattr(sys, "argv", [str(program)])
    expected = (RECORDED / f"{name}.txt").read_text().splitlines()
    printed: list[str] = []
    for _ in range(MOST_RUNS if name in WITH_SHORT_LIVED_STATE else 1):
        runpy.run_path(str(program), run_name="__main__")
        printed = PROGRAMS[name](capsys.readouterr().out.splitlines())
        if printed == expected:
            break
    assert printed == expected


FAILING = """
from py4j.protocol import Py4JJavaError
from pyflink.datastream import StreamExecutionEnvironment

def fail(value):
    from pyflink.common import Row  # in the slot as well, the name leads to Rekindle
    raise ValueError(f"no {Row(value)}")

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).map(fail).print()
try:
    env.execute()
except Py4JJavaError as error:
    caught = error
"""


@pytest.mark.timeout(DEADLINE_S)
def test_except_py4j_java_error_catches_what_a_job_raises(spark: object, tmp_path: Path) -> None:
    program = tmp_path / "failing.py"
    program.write_text(FAILING)
    caught = runpy.run_path(str(program), run_name="__main__")["caught"]
    assert "ValueError: no <Row(1)>" in str(caught)
    assert "ValueError: no <Row(1)>" in caught.java_exception.getMessage()
