"""Sinks beside bare loops over their clients."""
