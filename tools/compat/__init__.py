"""Comparisons with a real Flink: PyFlink's own tests, its example programs. `make compat` runs them."""
