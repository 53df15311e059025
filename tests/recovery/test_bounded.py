"""Many checkpoints, with slots that die in between: files, threads and handles do not pile up."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.many_checkpoints import ManyCheckpoints

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CHECKPOINTS, KILL_EVERY = 60, 20
#: Each checkpoint writes a manifest and up to four state files. If they all stayed, there would be about 300 of them.
MOST_FILES = 100


def test_sixty_checkpoints_and_two_dead_slots_leave_nothing_behind(spark: object, tmp_path: Path) -> None:
    """I5, I12, I14: files, threads, handles and processes at the end are what they were at the beginning."""
    job = ManyCheckpoints(tmp_path, interval_ms=50)
    try:
        first, last = job.run(CHECKPOINTS, KILL_EVERY, [KILL_EVERY // 2, CHECKPOINTS])
        assert job.kills == 2, "nobody died: this test shows nothing"
    finally:
        job.client.cancel().result()
    assert last.files <= MOST_FILES
    assert published(tmp_path) == [], "it was cancelled, and nothing is retained"
    for name in ("driver_threads", "slot_threads", "driver_handles", "slot_handles", "processes"):
        before, after = getattr(first, name), getattr(last, name)
        assert after <= before + 3, f"{name}: {before} at checkpoint {first.checkpoint}, {after} at {last.checkpoint}"
    assert last.slots_mib < first.slots_mib * 1.3
    assert last.driver_mib < first.driver_mib * 1.3


def published(directory: Path) -> list[Path]:
    return list(directory.glob("*/*/chk-*/_metadata"))
