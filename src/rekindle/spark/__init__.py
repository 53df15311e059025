"""Runs jobs on Spark: sessions, slots, epochs as Spark jobs, pumps, DataFrames. Only this package imports pyspark."""
