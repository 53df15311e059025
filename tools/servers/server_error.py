"""The error of this package."""

from __future__ import annotations


class ServerError(Exception):
    """A server that cannot be fetched, started or stopped; the message is for people and says what to do."""
