"""The type variables of PyFlink's generic functions and windows: programs import them for their own classes."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["IN", "IN1", "IN2", "KEY", "OUT", "W2", "T", "W"]

T = TypeVar("T")
IN = TypeVar("IN")
IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
W2 = TypeVar("W2")
