"""Fault-tolerant, stateful stream processing for Python on Spark, with PyFlink's API."""

from __future__ import annotations

__version__ = "0.1.0.dev0"
