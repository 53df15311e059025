"""Tumbling and session windows: Rekindle, PyFlink and Bytewax in one session."""
