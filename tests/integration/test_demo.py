"""`make demo` as its users run it: its claims hold, and no process stays behind, also after Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest

from tests.running_program import RunningProgram, seconds_until_gone

pytestmark = pytest.mark.timeout(400)


def test_the_demo_breaks_the_job_four_times_and_every_branch_is_equal():
    with RunningProgram("examples.demo", "--orders", "5000", "--rate", "900", "--seed", "11") as program:
        assert program.wait(deadline_s=350.0) == 0, program.story()
        said = "\n".join(program.out)
        assert len(re.findall(r"running again [\d.]+ s later, from (?:checkpoint|savepoint) \d+", said)) == 4
        assert re.search(r"checkpoint \d+ complete in \d+ ms: .* written, state ", said)
        assert len(re.findall(r"│ equal +│", said)) == 9
        assert "DIFFERENT" not in said
        assert "Proved: the job was broken 4 times" in said
        seconds_until_gone(program.processes(), time.monotonic(), deadline_s=10.0)
        assert os.listdir(program.temporary) == []


def test_after_ctrl_c_nothing_is_left():
    with RunningProgram("examples.demo", "--rate", "500") as program:
        program.wait_for_line("checkpoint 1 complete")
        family = program.processes()
        assert len(family) > 3
        program.send_signal(signal.SIGINT)
        assert program.wait(deadline_s=60.0) == 128 + signal.SIGINT, program.story()
        seconds_until_gone(family, time.monotonic(), deadline_s=10.0)
        assert program.out[-1] == "Interrupted: the job is gone, and so are its files."
        assert os.listdir(program.temporary) == []
