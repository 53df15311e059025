"""The kept checkpoints: their archives, what a job that goes on from one gives, and unpacked copies."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

KEPT = Path(__file__).parents[1] / "data" / "checkpoints"
ARCHIVES = sorted(KEPT.glob("*/*.zip"))
#: The branches whose results depend on the clock, or on the number of subtasks.
BY_CLOCK = ("timers", "expires")
BY_SUBTASK = ("lists", "listed")


def unpacked(archive: Path, folder: Path) -> str:
    """The path that a user would name."""
    with ZipFile(archive) as kept:
        kept.extractall(folder / archive.stem)
    (metadata,) = (folder / archive.stem).rglob("_metadata")
    return str(metadata.parent)


def expected(archive: Path) -> list[str]:
    return (archive.parent / "expected.txt").read_text().splitlines()


def without(found: list[str], *branches: str) -> list[str]:
    """The results of the other branches; the lines of the sinks depend on the subtasks, too."""
    left_out = tuple(f"('{each}'" for each in branches)
    return [line for line in found if line.startswith("(") and not line.startswith(left_out)]
