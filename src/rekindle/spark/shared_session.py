"""One session of our own per process: made for the first job, used by the next ones, stopped when the program ends."""

from __future__ import annotations

import atexit
import contextlib
import threading
from dataclasses import replace

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.errors import ClusterError
from rekindle.spark.session import SessionLease, active_context, obtain_session, stop_context

_lock = threading.Lock()
_own: SessionLease | None = None


def lease_session(configuration: Configuration) -> SessionLease:
    """The session for a job; closing the lease leaves it open for the next one."""
    global _own
    with _lock:
        if _own is not None and _is_for_another_master(_own, configuration):
            stop_own_session()
        lease = obtain_session(configuration)
        if lease.owned:
            _own = lease
            atexit.register(stop_own_session)
        return replace(lease, owned=False)


def stop_own_session() -> None:
    """Stop the session that was made here, if it still runs."""
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
