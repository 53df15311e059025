"""The one session of our own per process: started for the first job, shared by later ones, stopped at program exit."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
from dataclasses import replace

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.errors import ClusterError
from rekindle.spark import internals
from rekindle.spark.gateway import end_jvm, forget_jvm
from rekindle.spark.session import SessionLease, active_context, obtain_session, stop_context
from rekindle.spark.session_ending import session_ending

_LOG = logging.getLogger("rekindle.spark")
#: How long the JVM of a session that has ended by itself may take to end.
_JVM_ENDS_S = 10.0
_lock = threading.Lock()
_own: SessionLease | None = None


def lease_session(configuration: Configuration) -> SessionLease:
    """The session for a job; closing the lease leaves it open for the next one.

    A session of ours that has ended by itself is replaced by another one.
    """
    global _own
    with _lock:
        _forget_ended_session()
        if _own is not None and _is_for_another_master(_own, configuration):
            stop_own_session()
        lease = obtain_session(configuration)
        if lease.owned:
            _own = lease
            atexit.register(stop_own_session)
        is_ours = _own is not None and lease.context is _own.context
        return replace(lease, owned=False, renewable=is_ours and has_own_jvm())


def has_own_jvm() -> bool:
    """Whether this process starts its JVM itself. Under spark-submit the JVM is its parent, and there is no other."""
    return "PYSPARK_GATEWAY_PORT" not in os.environ


def _forget_ended_session() -> None:
    global _own
    if _own is None or internals.is_stopped(_own.context) or (ending := session_ending(_own.context)) is None:
        return
    _LOG.warning("The Spark session has ended (%s): another one is started.", ending)
    if internals.gateway_ending() is not None:
        forget_jvm()
    else:
        internals.note_ending(_own.context, ending)
        stop_context(_own.context)
        if has_own_jvm():  # it may still be stopping its context, and would refuse another one
            end_jvm(_JVM_ENDS_S)
    _own = None


def stop_own_session() -> None:
    """Stop the session that `lease_session` started, if it still runs."""
    global _own
    atexit.unregister(stop_own_session)
    own, _own = _own, None
    # Without its JVM a session has nothing left to stop.
    with contextlib.suppress(ClusterError):
        if own is not None and active_context() is not None:
            stop_context(own.context)


def _is_for_another_master(own: SessionLease, configuration: Configuration) -> bool:
    wanted = configuration.get(config.MASTER)
    return active_context() is not None and wanted is not None and wanted != own.context.master
