"""A process dies (SIGKILL) at every named point of the checkpoint protocol: nothing is lost, nothing comes twice.

The job is source → keyed state → exchange → a sink that commits with the checkpoints. Points in a slot are tried one
after the other in one program, whose jobs restart by themselves. At points in the driver the program dies; it is run
again with `execution.state-recovery.path=latest`, and dies at the next point.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rekindle.crash_points import CRASH_AT, CRASH_ONCE, CrashPoint
from tests.recovery.programs.matrix import expected
from tests.recovery.programs.staged_lines import committed
from tests.support.running_program import REPOSITORY, RunningProgram

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

PROGRAM = "tests.recovery.programs.matrix"
ROUNDS, DRIVER_ROUNDS = 3, 12


def reached_in(package: str) -> list[CrashPoint]:
    """The crash points that the code of a package reaches, so that a new point needs no change here."""
    sources = [path.read_text() for path in (REPOSITORY / "src" / "rekindle" / package).rglob("*.py")]
    return [point for point in CrashPoint if any(f"CrashPoint.{point.name})" in text for text in sources)]


IN_SLOT, IN_DRIVER = reached_in("runtime"), [*reached_in("coordinator"), *reached_in("checkpoint")]


@dataclass(frozen=True)
class Blow:
    """Where a process dies, and at which visit of that point.

    `final`: in a job whose only checkpoint is the one at its end (I9).
    """

    point: CrashPoint
    times: int = 1
    final: bool = False

    def __str__(self) -> str:
        return f"{self.point.value}-{'final' if self.final else self.times}"

    def at(self, process: str) -> str:
        """The value for `REKINDLE_CRASH_AT`."""
        return f"{self.point.value}:{self.times}@{process}"

    @property
    def rounds(self) -> int:
        """The number of rounds of its job."""
        return 1 if self.final else ROUNDS

    @property
    def settings(self) -> str:
        """The settings of an order beside name and crash."""
        return ",rounds=1,interval=600000" if self.final else ""


#: A slot hosts three tasks, and each of them passes: the fourth to the sixth time belong to the second checkpoint.
SLOT_BLOWS = [
    *(Blow(point) for point in IN_SLOT),
    Blow(CrashPoint.BEFORE_RESTORE, 2),
    Blow(CrashPoint.AFTER_UPLOAD, 6),
    Blow(CrashPoint.BEFORE_COMMIT, 5),
    Blow(CrashPoint.AFTER_SNAPSHOT, final=True),
    Blow(CrashPoint.BEFORE_COMMIT, final=True),
    Blow(CrashPoint.AFTER_COMMIT, final=True),
]
DRIVER_BLOWS = [
    *(Blow(point) for point in IN_DRIVER),
    Blow(CrashPoint.AFTER_PUBLISH, 2),
]
FINAL_DRIVER_BLOWS = [Blow(CrashPoint.AFTER_PUBLISH, final=True), Blow(CrashPoint.AFTER_NOTIFY, final=True)]


def test_every_point_is_reached_somewhere() -> None:
    assert [point for point in CrashPoint if point not in IN_SLOT + IN_DRIVER] == []


# -- in a slot: the job restarts by itself ----------------------------------------------------------------------------


#: Points of a restore and of a repeated commit: reached only after a failure.
AFTER_A_FAILURE = ("RESTORE", "PART", "RECOMMIT")


def order_of(blow: Blow) -> str:
    fail = ",fail=2" if blow.point.name.endswith(AFTER_A_FAILURE) else ""
    return f"{blow},crash={blow.at('slot')}{fail}{blow.settings}"


@dataclass(frozen=True)
class SlotRuns:
    """One program that runs a job for every order."""

    directory: Path
    program: RunningProgram

    def output(self, name: str) -> list[tuple[int, int]]:
        self.program.wait_for_line(f"{name}: ended")
        return committed(self.directory / name)

    def crashed(self, name: str) -> bool:
        return (self.directory / f"{name}.crashed").exists()

    def left_over(self, name: str) -> list[str]:
        """The staged files that were neither committed nor swept."""
        return [path.name for path in (self.directory / name).iterdir() if path.name.startswith(".")]


@pytest.fixture(scope="module")
def slot_runs(tmp_path_factory: pytest.TempPathFactory, no_slot_left: None) -> Iterator[SlotRuns]:
    directory = tmp_path_factory.mktemp("slots")
    others = [
        "by-hand,sink=StagedLines,crash=before-commit@slot",
        # With time enough that every checkpoint holds records, also on a slow machine.
        "direct,sink=Direct,crash=after-snapshot:6@slot,pause=500",
        # Its only checkpoint is the last one, so that holds everything.
        "forgetful,sink=Forgetful,crash=before-commit@slot,rounds=1,interval=600000",
    ]
    orders = ["undisturbed", *map(order_of, SLOT_BLOWS), *others]
    with RunningProgram(PROGRAM, os.fspath(directory), *orders) as program:
        yield SlotRuns(directory, program)


@pytest.mark.parametrize("blow", SLOT_BLOWS, ids=str)
def test_a_slot_dies(slot_runs: SlotRuns, blow: Blow) -> None:
    """I3, I8, I9, I12, I18: the committed output is that of the undisturbed run."""
    output = slot_runs.output(str(blow))
    assert slot_runs.crashed(str(blow)), "nobody died"
    assert output == expected(blow.rounds)
    assert slot_runs.left_over(str(blow)) == []


def test_nobody_dies(slot_runs: SlotRuns) -> None:
    """The undisturbed run, which the others are compared with, is what plain Python expects."""
    assert slot_runs.output("undisturbed") == expected(ROUNDS)


def test_a_sink_that_commits_by_hand(slot_runs: SlotRuns) -> None:
    """A sink function with operator state and a listener needs no more than that to commit each record once."""
    assert slot_runs.output("by-hand") == expected(ROUNDS)
    assert slot_runs.crashed("by-hand")


def test_a_sink_that_does_not_wait_for_checkpoints_writes_twice(slot_runs: SlotRuns) -> None:
    """The same crash without the mechanism loses or doubles lines: the matrix can fail."""
    output = slot_runs.output("direct")
    assert slot_runs.crashed("direct")
    assert set(output) == set(expected(ROUNDS))
    assert len(output) > len(set(output))


def test_a_sink_that_does_not_commit_again_loses(slot_runs: SlotRuns) -> None:
    """The same crash without the mechanism loses or doubles lines: the matrix can fail."""
    output = slot_runs.output("forgetful")
    assert slot_runs.crashed("forgetful")
    assert len(output) == len(set(output))
    assert set(output) < set(expected(rounds=1))


# -- in the driver: the program is run again --------------------------------------------------------------------------


@dataclass(frozen=True)
class DriverRuns:
    """The lines committed until the program died at each point, and in the end."""

    until: dict[Blow, list[tuple[int, int]]]
    died: dict[Blow, bool]
    output: list[tuple[int, int]]


def die_again_and_again(directory: Path, order: str, blows: list[Blow], last: str | None = None) -> DriverRuns:
    """Run the program once per crash point, then without a crash, perhaps with another order. Every run goes on where
    the run before died.
    """
    until: dict[Blow, list[tuple[int, int]]] = {}
    died: dict[Blow, bool] = {}
    for blow in blows:
        once = directory / f"{blow}.crashed"
        environment = {CRASH_AT: blow.at("driver"), CRASH_ONCE: os.fspath(once)}
        with RunningProgram(PROGRAM, os.fspath(directory), order, environment=environment) as program:
            status = program.wait()
        died[blow] = status == -signal.SIGKILL and once.exists()
        until[blow] = committed(directory / "job")
    with RunningProgram(PROGRAM, os.fspath(directory), last or order) as program:
        assert program.wait() == 0, program.story()
    return DriverRuns(until, died, committed(directory / "job"))


@pytest.fixture(scope="module")
def driver_runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, no_slot_left: None
) -> DriverRuns:
    order = f"job,rounds={DRIVER_ROUNDS},resume=latest"
    blows = DRIVER_BLOWS if request.config.getoption("--long") else DRIVER_BLOWS[::3]
    return die_again_and_again(tmp_path_factory.mktemp("driver"), order, blows)


def every_third_is_short(blows: list[Blow]) -> list[Any]:
    return [pytest.param(blow, marks=[pytest.mark.long] if n % 3 else []) for n, blow in enumerate(blows)]


@pytest.mark.parametrize("blow", every_third_is_short(DRIVER_BLOWS), ids=str)
def test_the_driver_dies(driver_runs: DriverRuns, blow: Blow) -> None:
    """I14, I18: the lines committed until then are a part of the output, no line twice."""
    assert driver_runs.died[blow], "nobody died"
    output = driver_runs.until[blow]
    assert len(output) == len(set(output))
    assert set(output) <= set(expected(DRIVER_ROUNDS))


def test_in_the_end_the_resumed_program_has_committed_everything_once(driver_runs: DriverRuns) -> None:
    assert driver_runs.output == expected(DRIVER_ROUNDS)


@pytest.mark.long
def test_the_driver_dies_with_its_final_checkpoint(tmp_path: Path) -> None:
    """I9: resumed from the final checkpoint a job reads nothing, and commits what is left."""
    runs = die_again_and_again(tmp_path, "job,resume=latest,rounds=1,interval=600000", FINAL_DRIVER_BLOWS)
    assert all(runs.died.values())
    assert runs.output == expected(1)


@pytest.mark.long
def test_the_driver_dies_while_it_stops_with_a_savepoint(tmp_path: Path) -> None:
    """I17: `latest` is that savepoint from the moment at which it exists, and its committables are committed once."""
    order = f"job,resume=latest,rounds=3,interval=600000,stop={tmp_path / 'savepoints'}"
    blows = [Blow(CrashPoint.AFTER_PUBLISH), Blow(CrashPoint.AFTER_NOTIFY)]
    runs = die_again_and_again(tmp_path, order, blows, last="job,resume=latest,rounds=3")
    assert all(runs.died.values())
    assert len(list((tmp_path / "savepoints").iterdir())) == len(blows)
    assert runs.output == expected(3)
