"""Keyed state of both backends at growing sizes; `python -m benchmarks.large_state` measures it."""
