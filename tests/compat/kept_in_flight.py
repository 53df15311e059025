"""The kept checkpoints with records in flight."""

from __future__ import annotations

from pathlib import Path

ARCHIVES = sorted((Path(__file__).parents[1] / "data" / "in_flight").glob("*/*.zip"))
