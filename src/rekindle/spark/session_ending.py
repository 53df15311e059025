"""How a session ended without its program: its JVM died, Spark stopped it, or its master has forgotten it."""

from __future__ import annotations

from pyspark import SparkContext

from rekindle.spark import internals
from rekindle.spark.background_call import in_background

_STANDALONE = "spark://"
#: A master that does not answer in this time is away; the application may still be known to it.
_MASTER_ANSWERS_S = 5.0


def session_ending(sc: SparkContext) -> str | None:
    """How a session has ended without its program, as text; None when it goes on, or when its program stopped it."""
    if (ending := internals.ending_of(sc)) is not None or internals.is_stopped(sc):
        return ending
    if (ending := internals.jvm_ending(sc)) is not None:
        return f"its driver's JVM has ended, {ending}"
    if internals.is_stopping(sc):
        return "Spark has stopped it, because the cluster removed the application or does not answer any more"
    master = sc.master or ""
    if master.startswith(_STANDALONE) and _is_forgotten(sc, master):
        return f"the master at {master} does not know its application any more, so it was restarted or removed it"
    return None


def _is_forgotten(sc: SparkContext, url: str) -> bool:
    """Whether an active master answers, and none that does knows the application."""
    known = [_knows_application(sc, master) for master in url.removeprefix(_STANDALONE).split(",")]
    return False in known and True not in known


def _knows_application(sc: SparkContext, master: str) -> bool | None:
    """Whether an active master knows the application; None: it is not active, or does not answer."""
    answer = in_background(lambda: internals.applications_of_master(sc, master), "ask master")
    try:
        applications = answer.result(_MASTER_ANSWERS_S)  # a call to a host that has gone takes minutes
    except TimeoutError:
        return None
    except Exception as error:
        if internals.java_message(error) is None:
            raise
        return None
    return None if applications is None else sc.applicationId in applications
