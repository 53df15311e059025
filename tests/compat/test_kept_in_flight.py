"""A job goes on from records in flight that a release wrote into its checkpoints."""

from __future__ import annotations

from zipfile import ZipFile

import pytest

from rekindle.testing import InProcessJob, StoredCheckpoint
from tests.compat.in_flight import CLOCK, COUNT, EXPECTED, interrupted, program
from tests.compat.kept_in_flight import ARCHIVES


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.parent.name)
def test_a_job_goes_on_from_it_at_any_parallelism_on_either_backend(archive, parallelism, backend, tmp_path):
    with ZipFile(archive) as kept:
        kept.extractall(tmp_path)
    (metadata,) = tmp_path.rglob("_metadata")
    stream = program(parallelism, **{"state.backend.type": backend})
    job = InProcessJob.of(stream, CLOCK, restore=StoredCheckpoint.at(str(metadata.parent)))
    assert job.in_flight == COUNT - 6
    assert sorted(interrupted().results + job.run()) == EXPECTED


def test_one_is_kept():
    assert ARCHIVES
