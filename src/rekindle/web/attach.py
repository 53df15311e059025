"""The entry point: shows every job that a launcher starts, if the extra `web` is installed and not switched off."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from importlib.util import find_spec

from rekindle import config
from rekindle.config_parsers import in_millis
from rekindle.coordinator.observer import JobObserver
from rekindle.errors import ConfigurationError
from rekindle.monitor.monitored_job import Attached, MonitoredJob
from rekindle.web.rest_server import RestServer
from rekindle.web.rest_settings import MetricsPort, RestSettings, prometheus_ports
from rekindle.web.runtime_directory import announce
from rekindle.web.served_jobs import RunningJob
from rekindle.web.span_settings import span_observer

_LOG = logging.getLogger("rekindle.web")
_PACKAGES = ("starlette", "uvicorn", "prometheus_client")
_lock = threading.Lock()
#: The servers of this process, by their settings, and the ports of metrics that they serve.
_servers: dict[RestSettings, RestServer] = {}
_reporters: dict[tuple[RestSettings, MetricsPort], int] = {}
_said_missing = threading.Event()


def attach(job: MonitoredJob) -> Attached:
    """Show a job that is about to start."""
    observers: list[JobObserver] = []
    link = None
    if _is_wanted(job):
        settings = RestSettings.of(job.configuration)
        server = server_for(settings)
        observers.append(server.jobs.add(_running(job)))
        for reporter in prometheus_ports(job.configuration):
            _serve_metrics(server, reporter)
        link = server.link
        _LOG.info("Job '%s' is shown at %s", job.handle.job_id, server.url)
    spans = span_observer(job.configuration, str(job.handle.job_id), job.recorder)
    observers += [spans] if spans is not None else []
    return Attached(link, observers)


def server_for(settings: RestSettings) -> RestServer:
    """The server of this process with these settings, a new one if there is none."""
    with _lock:
        server = _servers.get(settings)
        if server is None:
            server = _servers[settings] = RestServer(settings)
            announce(server)
            atexit.register(_close, server, os.getpid())
        return server


def _close(server: RestServer, pid: int) -> None:
    """Before the process ends, tell waiting clients and pages how the jobs ended and where savepoints are."""
    if os.getpid() == pid:
        server.operations.wait_until_told()
        server.close()


def _serve_metrics(server: RestServer, reporter: MetricsPort) -> None:
    with _lock:
        if (server.settings, reporter) not in _reporters:
            _reporters[server.settings, reporter] = port = server.serve_metrics(reporter)
            _LOG.info("Metrics for Prometheus are at port %d of %s.", port, server.settings.bind_address)


def _is_wanted(job: MonitoredJob) -> bool:
    choice = job.configuration.get(config.REST_ENABLED)
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if choice == "false" or not missing:
        return choice != "false"
    needs = "The REST API and its page need pip install 'rekindle[web]'"
    if choice == "true":
        raise ConfigurationError(f"{needs}: install it, or set {config.REST_ENABLED.key} to auto.")
    if not _said_missing.is_set():
        _said_missing.set()
        _LOG.info("%s; the job runs without.", needs)
    return False


def _running(job: MonitoredJob) -> RunningJob:
    view = job.recorder.view()
    places = (view.checkpoint_config.directory, view.checkpoint_config.savepoint_directory)
    allowed = job.configuration.get(config.REST_DIRECTORIES) or []
    max_age = job.configuration.get(config.REST_READY_CHECKPOINT_AGE)
    return RunningJob(
        job.recorder,
        job.handle,
        tuple(each for each in (*places, *allowed) if each),
        job.store_options,
        job.configuration.get(config.WEB_CANCEL),
        None if max_age is None else in_millis(max_age),
    )
