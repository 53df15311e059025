"""The driver's log: time, level, logger and job on each line, as text or JSON; a program's own settings win."""

from __future__ import annotations

import io
import json
import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rekindle.coordinator.driver_log import JOB_OF_THREAD, DriverLog, driver_log, driver_logging


@contextmanager
def without_handlers() -> Iterator[None]:
    """The root logger without pytest's own handlers, and as it was afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def written(form: str, *jobs: str) -> tuple[DriverLog, io.StringIO]:
    stream = io.StringIO()
    log = DriverLog(form, stream)
    log.jobs.extend(jobs)
    return log, stream


def record(text: str, name: str = "rekindle.job") -> logging.LogRecord:
    return logging.LogRecord(name, logging.WARNING, "", 0, text, None, None)


def test_each_line_of_text_has_time_level_logger_and_job() -> None:
    log, stream = written("text", "word count")
    log.handle(record("it failed:\nTraceback"))
    form = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} WARNING rekindle\.job \[word count\] "
    first, second = stream.getvalue().splitlines()
    assert re.fullmatch(form + "it failed:", first)
    assert re.fullmatch(form + "Traceback", second)


def test_a_record_is_one_object_of_json() -> None:
    log, stream = written("json", "word count")
    log.handle(record("it failed:\nTraceback"))
    told = json.loads(stream.getvalue())
    assert stream.getvalue().count("\n") == 1
    assert told.pop("time").endswith("+00:00")
    assert told == {
        "level": "WARNING",
        "logger": "rekindle.job",
        "job": "word count",
        "message": "it failed:\nTraceback",
    }


def test_of_several_jobs_the_threads_own_is_named() -> None:
    log, stream = written("text", "one", "two")

    def speak() -> None:
        JOB_OF_THREAD.set("two")
        log.handle(record("hello"))

    thread = threading.Thread(target=speak)
    thread.start()
    thread.join()
    log.handle(record("of none"))
    assert [line.split("[")[1] for line in stream.getvalue().splitlines()] == ["two] hello", "-] of none"]


def test_the_level_is_that_of_all_loggers(capsys: pytest.CaptureFixture[str]) -> None:
    assert driver_log() is None
    with without_handlers(), driver_logging("info") as log:
        assert log is driver_log()
        logging.getLogger("rekindle.job").info("told")
        logging.getLogger("rekindle.job").debug("not told")
        logging.getLogger("py4j.clientserver").info("not told")
    assert driver_log() is None
    assert [line.split("] ")[1] for line in capsys.readouterr().err.splitlines()] == ["told"]


def test_a_program_that_configures_logging_keeps_its_form(capsys: pytest.CaptureFixture[str]) -> None:
    with without_handlers(), driver_logging("warning"):
        logging.basicConfig(level=logging.INFO, format="mine: %(message)s")
        logging.getLogger("rekindle.job").info("told")
    assert capsys.readouterr().err == "mine: told\n"


def test_the_last_traceback_is_known() -> None:
    log, _ = written("text")
    log.handle(record("failed:\nTraceback of it"))
    log.handle(record("another line"))
    assert log.has_shown("Traceback of it")
    assert not log.has_shown("Traceback of another")
