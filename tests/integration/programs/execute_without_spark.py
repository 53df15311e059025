"""A plain program, as `python program.py` runs it, whose jobs run in slots of this machine without Spark."""

from __future__ import annotations

import runpy
import sys
from types import SimpleNamespace

from rekindle.datastream import find_launcher
from tests.support.local_cluster import launch_locally

find_launcher.load_engine = lambda: SimpleNamespace(launch=launch_locally)  # type: ignore[assignment,return-value]
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
