"""The order system, all five branches: Rekindle, PyFlink and Spark in one session."""
