"""A job whose connections are encrypted: slots and guardians reach their driver over TLS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rekindle.errors import ConfigurationError
from tests.support.certificates import make_files
from tests.support.environments import environment


def test_a_job_runs_over_tls(spark: Any, tmp_path: Path) -> None:
    files = make_files(tmp_path / "tls")
    settings = {f"rekindle.tls.{name}": getattr(files, name) for name in ("certificate", "key", "authority")}
    numbers = environment(2, **settings).from_collection(list(range(100))).key_by(lambda number: number % 7)
    with numbers.reduce(max).execute_and_collect() as results:
        assert max(results) == 99


def test_half_of_the_settings_is_refused_before_spark_is_asked(spark: Any, tmp_path: Path) -> None:
    stream = environment(2, **{"rekindle.tls.key": str(tmp_path / "key.pem")}).from_collection([1])
    with pytest.raises(ConfigurationError, match=r"without rekindle\.tls\.certificate and rekindle\.tls\.authority"):
        stream.execute_and_collect()
