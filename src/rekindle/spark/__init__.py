"""Runs jobs on Spark: sessions, slots, epochs as Spark jobs, the pump, DataFrames. Only this package imports pyspark."""
