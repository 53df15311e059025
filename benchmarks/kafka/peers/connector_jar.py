"""PyFlink's Kafka connector, fetched once as the jars of the servers are (``tools/servers``), by the clone's Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_CLONE = Path(__file__).resolve().parents[3]
_POM = Path(__file__).with_name("pyflink-pom.xml")


def connector_jar() -> Path:
    """Return the path of the jar; SystemExit with a sentence if it cannot be fetched.

    PyFlink's environment has neither PySpark's Ivy nor Rekindle: the clone's own environment fetches.
    """
    command = [_CLONE / ".venv" / "bin" / "python", "-m", "benchmarks.kafka.peers.connector_jar"]
    answer = subprocess.run(command, cwd=_CLONE, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise SystemExit(answer.stderr.strip() or "its jar could not be fetched")
    return Path(answer.stdout.strip())


def _fetch() -> Path:
    from tools.servers.fetch import JarList, fetch_jars
    from tools.servers.server_error import ServerError

    try:
        (jar,) = fetch_jars(JarList("PyFlink-Kafka", _POM, megabytes=10)).glob("*.jar")
    except ServerError as error:
        sys.exit(str(error))
    return jar


if __name__ == "__main__":
    print(_fetch())
