"""A program that uses a shared server until it is killed; the test gives it the server's name and the folder."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from tools.servers.shared import shared_server

if __name__ == "__main__":
    with shared_server(sys.argv[1], Path(sys.argv[2])) as server:
        print("uses", server, flush=True)
        signal.pause()
