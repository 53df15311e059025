"""The settings of a session of our own."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from rekindle.common import Configuration
from rekindle.errors import ClusterError, ConfigurationError
from rekindle.runtime.directories import OwnDirectory
from rekindle.spark import internals as private
from rekindle.spark import session
from rekindle.spark.gateway import (
    JvmOutput,
    launch_jvm,
    linked_spark_home,
    local_directories,
    patched_environment,
    remove_directory,
    without_worker_tracebacks,
)
from rekindle.spark.session import configured_master, is_on_this_machine, own_settings
from rekindle.spark.slots import slot_environment


def test_own_sessions_fail_at_once_and_listen_on_loopback() -> None:
    settings = own_settings("local[2]", Configuration())
    assert settings["spark.task.maxFailures"] == "1"
    assert settings["spark.stage.maxConsecutiveAttempts"] == "1"
    assert settings["spark.speculation"] == "false"
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert os.path.isdir(settings["spark.python.unix.domain.socket.dir"])


@pytest.mark.parametrize(("length", "unix"), [(60, True), (61, False)])
def test_a_temporary_directory_too_long_for_unix_sockets_is_no_hindrance(
    monkeypatch: pytest.MonkeyPatch, length: int, unix: bool
) -> None:
    monkeypatch.setattr(session, "temporary_directory", lambda purpose: OwnDirectory("/" + "t" * (length - 1), -1))
    settings = own_settings("local[2]", Configuration())
    assert (settings["spark.python.unix.domain.socket.enabled"] == "true") is unix
    assert ("spark.python.unix.domain.socket.dir" in settings) is unix


def test_a_cluster_chooses_its_own_addresses() -> None:
    settings = own_settings("spark://far:7077", Configuration())
    assert not {"spark.driver.host", "spark.driver.bindAddress"} & settings.keys()


@pytest.mark.parametrize("master", ["local", "local[2]", "local-cluster[2,1,1024]"])
def test_own_sessions_on_this_machine_have_a_secret_of_their_own(master: str) -> None:
    first, second = own_settings(master, Configuration()), own_settings(master, Configuration())
    assert first["spark.authenticate"] == "true"
    assert len(first["spark.authenticate.secret"]) >= 32
    assert first["spark.authenticate.secret"] != second["spark.authenticate.secret"]


def test_slots_are_not_told_sparks_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_SPARK_AUTH_SECRET", "open sesame")
    assert "open sesame" not in slot_environment(None).values()


def secret_file(path: Path, mode: int = 0o600, content: str = "open sesame\n") -> Configuration:
    path.write_text(content)
    path.chmod(mode)
    return Configuration().set_string("rekindle.spark.authenticate.secret-file", os.fspath(path))


def test_a_cluster_is_told_its_secret_from_a_file(tmp_path: Path) -> None:
    assert "spark.authenticate" not in own_settings("spark://far:7077", Configuration())
    settings = own_settings("spark://far:7077", secret_file(tmp_path / "secret"))
    assert settings["spark.authenticate"] == "true"
    assert settings["spark.authenticate.secret"] == "open sesame"


@pytest.mark.parametrize(
    ("mode", "content", "complaint"),
    [(0o644, "x", "can be read by others: chmod 600"), (0o600, " \n", "is empty")],
)
def test_a_secret_that_is_none_is_refused(tmp_path: Path, mode: int, content: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        own_settings("spark://far:7077", secret_file(tmp_path / "secret", mode, content))


def test_a_secret_that_is_not_there_is_refused(tmp_path: Path) -> None:
    configuration = secret_file(tmp_path / "secret")
    (tmp_path / "secret").unlink()
    with pytest.raises(ConfigurationError, match=r"rekindle\.spark\.authenticate\.secret-file names .* cannot be read"):
        own_settings("spark://far:7077", configuration)


def test_the_users_spark_settings_win() -> None:
    configuration = Configuration().set_string("rekindle.spark.conf.spark.task.maxFailures", "3")
    assert own_settings("local[2]", configuration)["spark.task.maxFailures"] == "3"


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("local", True),
        ("local[*]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://far:7077", False),
        ("yarn", False),
    ],
)
def test_which_masters_are_on_this_machine(master: str, here: bool) -> None:
    assert is_on_this_machine(master) is here


def test_the_default_master_is_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    assert configured_master(Configuration()) == "local[*]"
    assert configured_master(Configuration().set_string("master", "local[3]")) == "local[3]"


def test_spark_connect_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://far:15002")
    with pytest.raises(ClusterError, match=r"cannot run over Spark Connect \(sc://far:15002\)"):
        session.refuse_spark_connect()


def test_the_linked_home_has_everything_but_a_work_directory() -> None:
    home = Path(linked_spark_home().path)
    assert (home / "jars").is_symlink()
    assert (home / "bin" / "spark-submit").exists()
    assert not (home / "work").exists()


def test_local_directories_of_killed_drivers_are_removed_by_the_next(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    environ = {"SPARK_LOCAL_DIRS": f"{first}, {second}"}
    program = """
        import os, sys
        from rekindle.spark.gateway import local_directories
        print(*(own.path for own in local_directories(None, {"SPARK_LOCAL_DIRS": sys.argv[1]})), flush=True)
        os.kill(os.getpid(), 9)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), environ["SPARK_LOCAL_DIRS"]]
    of_the_killed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.split()
    assert [Path(path).parent for path in of_the_killed] == [first, second]
    assert all(os.stat(path).st_mode & 0o777 == 0o700 for path in of_the_killed)
    (first / "rekindle-spark-tools").mkdir()
    mine = local_directories("/not/asked/for", environ)
    assert not any(map(os.path.exists, of_the_killed))
    assert all(os.path.exists(own.path) for own in mine), "the second found the first abandoned"
    assert (first / "rekindle-spark-tools").exists()
    for own in mine:
        remove_directory(own.path)


def test_a_place_for_sparks_files_that_cannot_be_used_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ClusterError, match=r"Spark's files cannot be kept in .*/file/below: "):
        local_directories(os.fspath(tmp_path / "file" / "below"), {})


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("kill -9 $$", "did not start: it was killed by signal 9 (SIGKILL): by somebody, or by the kernel"),
        ("echo Error: no memory >&2; exit 1", "did not start: Error: no memory (it exited with code 1)"),
    ],
)
def test_a_jvm_that_ends_while_it_starts_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text(f"#!/bin/sh\n{script}\n")
    submit.chmod(0o700)
    monkeypatch.setattr(private, "has_gateway", lambda: False)
    with pytest.raises(ClusterError) as caught:
        launch_jvm({"SPARK_HOME": os.fspath(tmp_path)})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_driver_without_a_file_descriptor_says_so_before_it_starts_a_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> tuple[int, int]:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(private, "has_gateway", lambda: False)
    monkeypatch.setattr(os, "pipe", none_left)
    with pytest.raises(ClusterError, match=r"did not start: this process has no file descriptor left"):
        launch_jvm({})


def test_the_environment_is_what_it_was() -> None:
    before = dict(os.environ)
    with patched_environment({"PATH": "nowhere", "REKINDLE_TEST_NEW": "x"}):
        assert os.environ["PATH"] == "nowhere"
        assert os.environ["REKINDLE_TEST_NEW"] == "x"
    assert dict(os.environ) == before


def test_only_pysparks_own_tracebacks_are_dropped() -> None:
    users = ["Traceback (most recent call last):\n", '  File "job.py", line 1\n', "ValueError: mine\n"]
    pysparks = ["Traceback (most recent call last):\n", '  File "p/pyspark/daemon.py", line 1\n', "BrokenPipeError\n"]
    assert list(without_worker_tracebacks([*users, *pysparks, "on it goes\n"])) == [*users, "on it goes\n"]
    header, frame, end = pysparks
    at_once = [header, header, frame, end, frame, end]
    assert list(without_worker_tracebacks([*at_once, *users])) == users
    mixed = [header, frame, header, frame, end, end]
    same_end = [*users[:2], end]
    assert list(without_worker_tracebacks([*mixed, *same_end, "on it goes\n"])) == [*same_end, "on it goes\n"]


def test_the_jvm_is_quiet_until_the_session_stands(capsys: pytest.CaptureFixture[str]) -> None:
    output = JvmOutput()
    with open(os.dup(output.write), "w") as jvm:
        thread = output.start()
        jvm.write("WARNING: Using incubator modules\njava.lang.Error: no memory\n")
        jvm.flush()
    thread.join(10)
    assert output.likely_error() == "java.lang.Error: no memory"
    assert capsys.readouterr().err == ""
    opened = JvmOutput()
    opened.open()
    with open(os.dup(opened.write), "w") as jvm:
        thread = opened.start()
        jvm.write("something happened\n")
    thread.join(10)
    assert "something happened" in capsys.readouterr().err
