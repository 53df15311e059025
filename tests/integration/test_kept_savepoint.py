"""A job on Spark goes on from a savepoint and from a checkpoint that a release wrote."""

from __future__ import annotations

import pytest

from tests.compat.kept_checkpoints import ARCHIVES, BY_CLOCK, BY_SUBTASK, expected, unpacked, without
from tests.compat.program import job


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: f"{archive.parent.name} {archive.stem}")
def test_a_job_on_spark_goes_on_from_it(spark, archive, tmp_path):
    output = tmp_path / "output"
    output.mkdir()
    settings = {"rekindle.progress": "off", "execution.state-recovery.path": unpacked(archive, tmp_path)}
    stream = job(str(output), parallelism=2, **settings)
    found = sorted(map(repr, stream.execute_and_collect("kept")))
    assert without(found, *BY_CLOCK, *BY_SUBTASK) == without(expected(archive), *BY_CLOCK, *BY_SUBTASK)
    assert list(output.iterdir()), "nothing was committed"
