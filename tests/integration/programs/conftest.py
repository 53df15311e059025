"""These are programs for tests to run, each as a process of its own: nothing here is a test."""

from __future__ import annotations

collect_ignore_glob = ["*.py"]
