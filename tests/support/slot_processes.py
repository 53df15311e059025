"""The slot processes of a job or of a test run, found in the process table."""

from __future__ import annotations

from collections.abc import Iterator

import psutil

SLOT_MODULE = "rekindle.runtime.slot"
GUARDIAN_NAME = "rekindle-guard"
# Every process that a test starts, however deep, inherits this variable: so a run knows its own slots from another's.
RUN_VARIABLE = "REKINDLE_TEST_RUN"


def slots_of(job_name: str) -> list[psutil.Process]:
    """The living slot processes of a job, without their guardians."""
    return [
        process
        for process in _slot_processes()
        if job_name in process.info["cmdline"] and process.info["name"] != GUARDIAN_NAME
    ]


def slots_of_run(run: str) -> list[psutil.Process]:
    """The living slot processes, and their guardians, that the test run with this id started."""
    return [process for process in _slot_processes() if (process.info["environ"] or {}).get(RUN_VARIABLE) == run]


def _slot_processes() -> Iterator[psutil.Process]:
    for process in psutil.process_iter(["cmdline", "environ", "name", "status"]):
        is_slot = any(SLOT_MODULE in argument for argument in process.info["cmdline"] or ())
        if is_slot and process.info["status"] != psutil.STATUS_ZOMBIE:
            yield process
