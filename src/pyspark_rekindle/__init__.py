"""Spark looks for packages named `pyspark_*` and registers their `DefaultSource`: `spark.read.format("rekindle")`."""

from __future__ import annotations

from rekindle.spark.state_source import StateDataSource as DefaultSource

__all__ = ["DefaultSource"]
