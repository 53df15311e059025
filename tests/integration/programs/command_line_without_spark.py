"""The command line, whose jobs run in slots of this machine without Spark: it starts in a second."""

from __future__ import annotations

import sys
from types import SimpleNamespace

from rekindle.cli import launchers
from rekindle.cli.command_line import main
from tests.support.local_cluster import launch_locally

launchers.load_engine = lambda: SimpleNamespace(launch=launch_locally)  # type: ignore
main(sys.argv[1:])
