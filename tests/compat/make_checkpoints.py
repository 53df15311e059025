"""Writes the checkpoint and the savepoint of `program.py` that later versions have to go on from.

    python -m tests.compat.make_checkpoints tests/data/checkpoints/0.1.0

Run it once for each release with a new format, never to make a test pass again: what is in the repository stands for
what users have.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from rekindle.checkpoint.paths import below, metadata_path, root_of
from rekindle.testing import InProcessCheckpoint, InProcessJob, ManualClock, StoredCheckpoint
from tests.compat.program import IN_FLIGHT, MINUTE_MS, PAUSE, START_MS, committed, job

#: Records that each source brings into an epoch: five epochs until the pause.
PER_EPOCH = 4


def interrupted(directory: str, *, savepoint: bool) -> tuple[list[object], InProcessCheckpoint]:
    """The results of a job until its pause, and the checkpoint there, which stands on another one, or savepoint."""
    while True:
        clock = ManualClock(START_MS)
        running = InProcessJob.of(job(directory, pauses=True), clock, max_records=PER_EPOCH)
        results = running.epoch() + running.epoch() + running.checkpoint().results
        clock.advance(50 * MINUTE_MS)
        results += running.epoch()
        last = running.checkpoint(savepoint=savepoint)
        results += last.results
        assert last.manifest.checkpoint_id == 2
        running.kill()
        come = Counter(name for name, _ in results)
        if (come["numbers"], come["asked"]) == (PAUSE, PAUSE - IN_FLIGHT):
            return results, last
        # Their threads were slower than the epochs: once more.


def continued(
    checkpoint: InProcessCheckpoint | StoredCheckpoint, directory: str, parallelism: int = 1, **settings: str
) -> list[str]:
    """What comes out of a job that goes on from there, and what its sinks have committed, as lines."""
    clock = ManualClock(START_MS + 100 * MINUTE_MS)
    results = InProcessJob.of(job(directory, parallelism=parallelism, **settings), clock, restore=checkpoint).run()
    return lines(results) + committed(directory)


def lines(results: Iterable[object]) -> list[str]:
    """In an order that does not depend on parallelism."""
    return sorted(map(repr, results))


def write(target: Path) -> None:
    """`checkpoint.zip`, `savepoint.zip`, and in `expected.txt` how a job goes on from either."""
    target.mkdir(parents=True)
    for savepoint in (False, True):
        with tempfile.TemporaryDirectory() as directory:
            _, taken = interrupted(directory, savepoint=savepoint)
        with tempfile.TemporaryDirectory() as directory:
            expected = continued(taken, directory)
        with ZipFile(target / f"{'savepoint' if savepoint else 'checkpoint'}.zip", "w") as archive:
            for path in needed(taken):
                archive.writestr(ZipInfo(path), taken.store.read(path), ZIP_DEFLATED)
    (target / "expected.txt").write_text("".join(f"{line}\n" for line in expected))


def needed(taken: InProcessCheckpoint) -> list[str]:
    """The files of a checkpoint or savepoint, older ones that it stands on included."""
    files = [below(root_of(taken.path), reference) for reference in taken.manifest.files()]
    return [metadata_path(taken.path), *sorted(files)]


if __name__ == "__main__":
    write(Path(sys.argv[1]))
