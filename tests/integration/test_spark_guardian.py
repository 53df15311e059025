"""A slot ends with its executor, its driver and its guardian, and leaves nothing behind, whatever user code does."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rekindle import protocol, wire
from rekindle.errors import ClusterError
from rekindle.runtime import guardian
from rekindle.runtime.scratch_folders import make_scratch_folder
from tests.support.waiting import wait_until

SECRET = b"guardian-test-secret"
GONE_WITHIN_S = 10.0

#: A stand-in for the executor's JVM: starts the slot, prints its report and lives until it is killed.
EXECUTOR = """
    import subprocess, sys, time
    slot = subprocess.Popen([sys.executable, "-c", sys.argv[1], *sys.argv[2:]], start_new_session=True)
    time.sleep(600)
"""

SLOT = """
    import json, os, re, subprocess, sys, time
    from rekindle import protocol
    from rekindle.runtime import guardian
    port, directory, work = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    os.chdir(directory)
    launch = protocol.SlotLaunch("job", "demo", 1, 0, 1, "127.0.0.1", port, b"guardian-test-secret",
                                 protocol.Heartbeat(200, 1000), executor_pid=os.getppid(), directory=directory)
    mine = guardian.start_guardian(launch, directory)
    child = subprocess.Popen(["sleep", "600"])
    stray = subprocess.Popen(["sleep", "600"], start_new_session=True)
    begin_daemon = "import subprocess as s; print(s.Popen(['sleep', '600'], start_new_session=True, stdout=-3).pid)"
    daemon = int(subprocess.check_output([sys.executable, "-c", begin_daemon]))
    mine.watch()
    pids = {"slot": os.getpid(), "guardian": mine.pid, "child": child.pid, "stray": stray.pid, "daemon": daemon}
    from rekindle.runtime.scratch_folders import make_scratch_folder
    scratch = make_scratch_folder(directory, [directory + "-scratch"])
    print(json.dumps(pids), flush=True)
    if work == "stuck":
        re.match(r"(a+)+$", "a" * 60 + "b")  # holds the interpreter's lock for years
    elif work == "end":
        sys.exit(7)
    time.sleep(600)
"""


class Scene:
    """An executor, a slot with two children and an orphan, its guardian, and the driver's end of the lifeline."""

    def __init__(self, directory: Path, work: str) -> None:
        self.directory = directory
        self.scratch = directory.with_name(directory.name + "-scratch")
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            code = [textwrap.dedent(EXECUTOR), textwrap.dedent(SLOT), str(port), os.fspath(directory), work]
            self.executor = subprocess.Popen([sys.executable, "-c", *code], stdout=subprocess.PIPE)
            server.settimeout(20)
            self.lifeline = wire.accept(server.accept()[0], SECRET)
        self.hello = protocol.decode_from_slot(self.lifeline.receive())
        assert self.executor.stdout is not None
        pids = json.loads(self.executor.stdout.readline())
        self.pids: dict[str, int] = pids
        self._pidfds = {name: os.pidfd_open(pid) for name, pid in pids.items()}

    def gone(self, deadline_s: float = GONE_WITHIN_S) -> set[str]:
        """The processes that have ended by the deadline."""
        poll, waiting = select.poll(), dict(self._pidfds)
        for descriptor in waiting.values():
            poll.register(descriptor, select.POLLIN)
        end = time.monotonic() + deadline_s
        while waiting and (left_s := end - time.monotonic()) > 0:
            for descriptor, _ in poll.poll(left_s * 1000):
                poll.unregister(descriptor)
                waiting = {name: fd for name, fd in waiting.items() if fd != descriptor}
        return self._pidfds.keys() - waiting.keys()

    def close(self) -> None:
        """End the processes that a failed test may have left."""
        for descriptor in self._pidfds.values():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            os.close(descriptor)
        self.executor.kill()
        self.executor.communicate()
        self.lifeline.close()


@contextlib.contextmanager
def scene(tmp_path: Path, work: str) -> Iterator[Scene]:
    directory = tmp_path / "slot"
    directory.mkdir()
    (directory / "state").write_text("x")
    played = Scene(directory, work)
    try:
        yield played
    finally:
        played.close()


def left(played: Scene) -> list[Path]:
    """The files that the slot has left, in its own directory and in the one that the user chose."""
    return [*played.scratch.iterdir(), *([played.directory] if played.directory.exists() else [])]


EVERYONE = {"slot", "guardian", "child", "stray", "daemon"}


def test_the_guardian_introduces_itself_to_the_driver(tmp_path: Path) -> None:
    with scene(tmp_path, "sleep") as played:
        assert played.hello == protocol.Lifeline("job", 1, 0)
        process = guardian.process_of(played.pids["guardian"])
        assert process is not None
        assert process.command == "rekindle-guard"
        assert os.getsid(played.pids["guardian"]) != os.getsid(played.pids["slot"])
        inherited = os.listdir(f"/proc/{played.pids['guardian']}/fd")
        assert len(inherited) <= 3 + 3 + 1  # standard streams; slot, executor, lifeline; the poll in progress
        assert played.gone(0.2) == set()


@pytest.mark.parametrize("work", ["sleep", "stuck"])
def test_a_dead_executor_takes_its_slot_along(tmp_path: Path, work: str) -> None:
    with scene(tmp_path, work) as played:
        played.executor.kill()
        assert played.gone() == EVERYONE
        assert not left(played)


@pytest.mark.parametrize("work", ["sleep", "stuck"])
def test_a_dead_driver_takes_its_slots_along(tmp_path: Path, work: str) -> None:
    with scene(tmp_path, work) as played:
        played.lifeline.close()
        assert played.gone() == EVERYONE
        assert not left(played)


def test_what_a_killed_slot_leaves_is_removed(tmp_path: Path) -> None:
    with scene(tmp_path, "stuck") as played:
        os.kill(played.pids["slot"], signal.SIGKILL)
        assert played.gone() == EVERYONE
        assert not left(played)


def test_a_slot_that_ends_by_itself_leaves_nothing(tmp_path: Path) -> None:
    with scene(tmp_path, "end") as played:
        assert played.gone() == EVERYONE
        assert not left(played)


def test_a_slot_goes_with_its_guardian(tmp_path: Path) -> None:
    with scene(tmp_path, "sleep") as played:
        os.kill(played.pids["guardian"], signal.SIGKILL)
        # Without its guardian no process knows the orphaned children of the slot.
        assert played.gone(5.0) == EVERYONE - {"daemon"}
        assert not left(played)


def test_what_a_slot_left_that_was_killed_with_its_guardian_goes_with_the_hosts_next_slot(tmp_path: Path) -> None:
    with scene(tmp_path, "sleep") as played:
        os.kill(played.pids["guardian"], signal.SIGSTOP)  # so that neither notices the end of the other
        os.kill(played.pids["slot"], signal.SIGSTOP)
        os.kill(played.pids["guardian"], signal.SIGKILL)
        os.kill(played.pids["slot"], signal.SIGKILL)
        assert played.gone() >= {"guardian", "slot"}
        (abandoned,) = played.scratch.iterdir()
        own = make_scratch_folder(str(tmp_path), [str(played.scratch)])
        assert [own.path] == [str(each) for each in played.scratch.iterdir()]
        assert own.path != str(abandoned)
        own.release_lock()


def last_word(played: Scene) -> str:
    word = protocol.decode_from_slot(played.lifeline.receive())
    assert isinstance(word, protocol.SlotEnded)
    return word.how


def test_the_guardian_says_how_its_slot_ended(tmp_path: Path) -> None:
    with scene(tmp_path, "end") as played:
        assert last_word(played) == "it exited with code 7"


def test_the_guardian_says_which_signal_killed_its_slot(tmp_path: Path) -> None:
    with scene(tmp_path, "stuck") as played:
        os.kill(played.pids["slot"], signal.SIGKILL)
        assert last_word(played).startswith("it was killed by signal 9 (SIGKILL): by somebody, or by the kernel")


def test_the_guardian_says_that_the_executor_has_ended(tmp_path: Path) -> None:
    with scene(tmp_path, "sleep") as played:
        played.executor.kill()
        assert last_word(played) == f"its Spark executor (process {played.executor.pid}) has ended"


def test_orphans_that_end_while_the_slot_lives_are_taken_leave_of(tmp_path: Path) -> None:
    with scene(tmp_path, "sleep") as played:
        daemon = played.pids["daemon"]
        process = guardian.process_of(daemon)
        assert process is not None
        assert process.parent == played.pids["guardian"]
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: guardian.process_of(daemon) is None, "its entry in the process table goes", deadline_s=60.0)


def test_an_unreachable_driver_is_said_in_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    code = """
        import os, sys
        from rekindle import protocol
        from rekindle.runtime import guardian
        os.setsid()
        heartbeat = protocol.Heartbeat(200, 1000)
        launch = protocol.SlotLaunch("job", "demo", 1, 3, 4, "127.0.0.1", int(sys.argv[1]), b"s", heartbeat)
        try:
            guardian.start_guardian(launch, sys.argv[2])
        except Exception as error:
            print(type(error).__name__, error)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(port), os.fspath(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout.startswith(f"ClusterError Slot 3 cannot reach the driver at 127.0.0.1:{port}")


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ClusterError, match="Linux only"):
        guardian.refuse_other_systems()


def test_ancestors_lead_to_the_first_process() -> None:
    above = list(guardian.ancestors(os.getpid()))
    assert above[0] == os.getppid()
    assert len(set(above)) == len(above)
