"""The empty data folder of a broker. Kafka's tool for it takes seconds, so the cache of jars keeps its first result."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

from tools.servers.java_command import java_command
from tools.servers.kafka_access import log_option
from tools.servers.server_error import ServerError

_DEADLINE_S = 90.0


def write_data_folder(jars: Path, properties: Path, data: Path) -> None:
    """Make the folder that the broker's properties name as its `log.dirs`.

    What is in it depends on nothing but Kafka's version: brokers that start from one copy share an id of the cluster,
    which matters only to brokers that know each other.
    """
    kept = jars.parent / "formatted"
    if kept.exists():
        shutil.copytree(kept, data)
    else:
        _format(jars, properties)
        # A cache that belongs to somebody else cannot keep it; one that another process has just filled need not.
        with contextlib.suppress(OSError):
            _keep(data, kept)


def new_cluster_id() -> str:
    """A random id in Kafka's form: base64 of 16 bytes. It may begin with a dash, as one of 64 does."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _format(jars: Path, properties: Path) -> None:
    cluster_id = new_cluster_id()
    command = java_command(jars, log_option(), heap_mb=128)
    command += ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", str(properties)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)
    if answer.returncode != 0:
        raise ServerError(f"Kafka could not format its data folder: {answer.stdout}{answer.stderr}".strip())


def _keep(data: Path, kept: Path) -> None:
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        os.rename(shutil.copytree(data, Path(folder) / "formatted"), kept)
