"""Compares the session that the user brought with the settings that suit epochs, and warns of each difference."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator

from pyspark import SparkContext

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.spark.slots import is_local_master, master_of

_LOG = logging.getLogger("rekindle.spark")
#: The applications whose user has been warned.
_reported: set[str] = set()
#: Setting, Spark's default, whether a value suits epochs, and what follows from one that does not.
_CHECKED_SETTINGS: tuple[tuple[str, str, Callable[[str], bool], str], ...] = (
    (
        "spark.task.maxFailures",
        "4",
        lambda value: value == "1",
        "Spark tries a failed task again, in vain, before the job fails (a slot takes each row once); 1 fails at once",
    ),
    (
        "spark.stage.maxConsecutiveAttempts",
        "4",
        lambda value: value == "1",
        "Spark tries a failed stage again, in vain, before the job fails; 1 fails at once",
    ),
    (
        "spark.speculation",
        "false",
        lambda value: value == "false",
        "copies of slow tasks are refused by the slots and may fail the job; switch it off",
    ),
    (
        "spark.dynamicAllocation.enabled",
        "false",
        lambda value: value == "false",
        "the executors that hold this job's slots are kept until it ends",
    ),
    (
        "spark.python.worker.reuse",
        "true",
        lambda value: value == "true",
        "every task of every epoch starts a new Python process, which takes most of a second; switch it on",
    ),
    (
        "spark.python.unix.domain.socket.enabled",
        "false",
        lambda value: value == "true",
        "an epoch takes about twice as long as it could; switch it on",
    ),
)


def warn_of_differences(context: SparkContext, configuration: Configuration) -> None:
    """Warn of the borrowed session's differences, once per Spark application; the session stays as it is."""
    if context.applicationId in _reported:
        return
    _reported.add(context.applicationId)
    for line in differences(context, configuration):
        _LOG.warning("%s", line)


def differences(sc: SparkContext, configuration: Configuration) -> Iterator[str]:
    """A sentence for each setting of a borrowed session that differs from ours and matters."""
    master, running_on = configuration.get(config.MASTER), master_of(sc)
    if master is not None and master != running_on:
        yield f"The configured master {master} is not used: the active Spark session runs on {running_on}."
    conf = sc.getConf()
    for key, default, is_fine, consequence in _CHECKED_SETTINGS:
        value = (conf.get(key) or default).lower()
        if key == "spark.task.maxFailures" and is_local_master(running_on):
            # Local masters ignore the setting; local[cores, failures] has one of its own.
            value = (re.findall(r",\s*(\d+)\]", running_on) or ["1"])[0]
        if not is_fine(value):
            yield f"{key} is {value} in the active Spark session: {consequence}."
