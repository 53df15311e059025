"""Benchmarks of the clone; not part of the package. See README.md beside this file."""
