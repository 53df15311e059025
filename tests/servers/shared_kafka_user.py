"""A program that uses a shared broker until it is killed; the test gives it the folder."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from tools.servers.shared import shared_kafka

if __name__ == "__main__":
    with shared_kafka(Path(sys.argv[1])) as kafka:
        print("kafka", kafka.bootstrap_servers, flush=True)
        signal.pause()
