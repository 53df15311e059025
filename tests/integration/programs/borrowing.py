"""Runs a job on a session that the program makes itself, as plain PySpark programs do."""

from __future__ import annotations

from pyspark.sql import SparkSession

from rekindle.datastream import StreamExecutionEnvironment

SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
env.from_collection([1, 2, 3], int).map(lambda n: n + 1, int).print()
env.execute("borrowed")
