"""The warnings about a borrowed session."""

from __future__ import annotations

from typing import Any

from rekindle.common import Configuration
from rekindle.spark.borrowed_session import differences


class BorrowedContext:
    """The part of a SparkContext that `differences` reads."""

    def __init__(self, master: str, **conf: str) -> None:
        self.master = master
        self._conf = conf

    def getConf(self) -> dict[str, str]:
        return {f"spark.{key}": value for key, value in self._conf.items()}


def reported(master: str, configuration: Configuration | None = None, **conf: str) -> list[str]:
    sc: Any = BorrowedContext(master, **{key.replace("_", "."): value for key, value in conf.items()})
    return [line.split(" is ")[0] for line in differences(sc, configuration or Configuration())]


FAST: dict[str, Any] = {"python_unix_domain_socket_enabled": "true"}


def test_spark_defaults_on_a_cluster_are_reported() -> None:
    assert reported("yarn", **FAST) == ["spark.task.maxFailures", "spark.stage.maxConsecutiveAttempts"]


def test_a_local_master_fails_at_once_unless_it_says_otherwise() -> None:
    attempts: dict[str, Any] = {"stage_maxConsecutiveAttempts": "1"}
    assert reported("local[2]", **FAST, **attempts) == []
    assert reported("local[2,3]", **FAST, **attempts) == ["spark.task.maxFailures"]


def test_what_slows_or_endangers_epochs_is_reported() -> None:
    settings: dict[str, Any] = {
        "task_maxFailures": "1",
        "stage_maxConsecutiveAttempts": "1",
        "speculation": "true",
        "dynamicAllocation_enabled": "TRUE",
        "python_worker_reuse": "false",
    }
    assert reported("yarn", **settings) == [
        "spark.speculation",
        "spark.dynamicAllocation.enabled",
        "spark.python.worker.reuse",
        "spark.python.unix.domain.socket.enabled",
    ]


def test_a_configured_master_that_is_not_used_is_reported() -> None:
    configuration = Configuration().set_string("master", "yarn")
    assert reported("local[2]", configuration, **FAST, stage_maxConsecutiveAttempts="1") == [
        "The configured master yarn"
    ]
