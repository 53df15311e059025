"""Sessions that Rekindle starts: quiet, on loopback, without files left behind; borrowed sessions do not change."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import textwrap
import time
import venv
from pathlib import Path
from typing import Any

import pyspark
import pytest

from rekindle.common import Configuration
from rekindle.errors import ClusterError
from rekindle.spark import borrowed_session
from rekindle.spark.session import active_context, create_session, obtain_session
from tests.support.running_program import RunningProgram, seconds_until_gone

REPOSITORY = Path(__file__).resolve().parents[2]

#: Makes a session on the given master, runs a job that succeeds and one that fails, prints what it found.
PROGRAM = """
    import json, os, signal, sys, threading
    from rekindle.common import Configuration
    from rekindle.spark.session import obtain_session

    before = dict(os.environ)
    lease = obtain_session(Configuration().set_string("master", sys.argv[1]))
    sc = lease.spark.sparkContext
    total = sc.parallelize(range(10), 2).map(lambda value: value + 1).sum()
    try:
        sc.parallelize([1], 1).map(lambda value: value / 0).count()
    except Exception as error:
        failed = type(error).__name__
    print(json.dumps({
        "owned": lease.owned,
        "again": obtain_session(Configuration()).owned,
        "total": total,
        "failed": failed,
        "executable": sc.pythonExec,
        "page": sc.uiWebUrl,
        "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "environment": sorted(key for key in before | os.environ if os.environ.get(key) != before.get(key)),
        "sockets": sc.getConf().get("spark.python.unix.domain.socket.dir"),
        "authenticated": sc.getConf().get("spark.authenticate") == "true",
        "secret": sc.getConf().get("spark.authenticate.secret"),
    }), flush=True)
    sys.stdin.readline()
    lease.close()
"""


def start(directory: Path, master: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), master],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
        env=os.environ | {"PYTHONPATH": os.fspath(REPOSITORY / "src"), "SPARK_SUBMIT_OPTS": ""},  # with Spark's page
    )


def end(process: subprocess.Popen[str]) -> str:
    _, errors = process.communicate("go on\n", timeout=60)
    assert process.returncode == 0, errors
    return errors


def command_lines_with(*secrets: str) -> list[str]:
    """The processes whose command line shows one of these secrets."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_text(errors="replace")
            found += [line for secret in secrets if secret in line]
    return found


@pytest.mark.long
def test_two_sessions_side_by_side_say_nothing(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    processes = [start(folder, "local[2]") for folder in folders]
    said = []
    for process in processes:
        assert process.stdout is not None
        said.append(json.loads(process.stdout.readline() or "{}"))
    assert [each["authenticated"] for each in said] == [True, True]
    assert said[0]["secret"] != said[1]["secret"]
    assert not command_lines_with(*(each["secret"] for each in said))
    errors = [end(process) for process in processes]
    # Among others: the second one found port 4040 taken, and the failed job had a Java stack.
    assert errors == ["", ""]
    for each in said:
        assert each["owned"]
        assert not each["again"]
        assert each["total"] == 55
        assert each["failed"]
        assert each["executable"] == sys.executable
        assert each["page"].startswith("http://127.0.0.1:")
        assert each["interrupt"]
        # Two sizes that every pyspark session leaves; nothing of ours.
        assert set(each["environment"]) <= {"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}
        assert not os.path.exists(each["sockets"])
    assert said[0]["page"] != said[1]["page"]
    assert [os.listdir(folder) for folder in folders] == [[], []]


@pytest.mark.cluster
@pytest.mark.long
def test_a_local_cluster_writes_nothing_into_the_installed_spark(tmp_path: Path) -> None:
    installed = Path(pyspark.__file__).parent
    process = start(tmp_path, "local-cluster[2,1,1024]")
    assert process.stdout is not None
    said = json.loads(process.stdout.readline() or "{}")
    assert said["authenticated"]
    assert not command_lines_with(said["secret"]), "every user of the machine can read command lines"
    assert end(process) == ""
    assert said["total"] == 55
    assert not (installed / "work").exists()
    assert os.listdir(tmp_path) == []


def test_the_active_session_is_borrowed_as_it_is(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    borrowed_session._reported.discard(spark.sparkContext.applicationId)
    before = dict(spark.sparkContext.getConf().getAll())
    configuration = Configuration().set_string("master", "yarn")
    with caplog.at_level(logging.WARNING, "rekindle.spark"):
        for _ in range(2):
            lease = obtain_session(configuration)
            assert not lease.owned
            assert lease.spark.sparkContext is spark.sparkContext
            lease.close()
    assert dict(spark.sparkContext.getConf().getAll()) == before
    lines = [record.getMessage() for record in caplog.records if record.name == "rekindle.spark"]
    assert lines == ["The configured master yarn is not used: the active Spark session runs on local[2]."]
    assert active_context() is not None


def test_workers_of_a_borrowed_session_that_lack_rekindle_are_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a virtual environment that is not activated: Spark takes the `python3` of the PATH."""
    venv.create(tmp_path, with_pip=False)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    with RunningProgram("borrowing.py", environment={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}) as program:
        assert program.wait() == 1
        said = program.errors[-1]
        assert said.startswith("rekindle.errors.ClusterError: The Python workers of the active Spark session run ")
        assert f"'python3' ({tmp_path}/bin/python3), which cannot import Rekindle (ModuleNotFoundError: " in said
        assert said.endswith(f"set PYSPARK_PYTHON to this program's own interpreter, {sys.executable}.")
        assert not [line for line in program.errors if line.startswith("\tat ")], program.story()
        seconds_until_gone(program.processes(), time.monotonic(), deadline_s=30.0)


def test_a_second_session_is_refused(spark: Any) -> None:
    with pytest.raises(ClusterError, match="has an active Spark session"):
        create_session(Configuration())


def test_a_master_that_does_not_exist_is_said_in_a_sentence(tmp_path: Path) -> None:
    process = start(tmp_path, "locale[2]")
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    last = errors.strip().splitlines()[-1]
    assert last.startswith("rekindle.errors.ClusterError: Spark could not start on 'locale[2]': ")
    assert "Could not parse Master URL" in last
    assert "\tat " not in errors
