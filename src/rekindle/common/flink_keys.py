"""The configuration keys of Flink, deprecated spellings included, and what is like them.

`flink_keys.txt` has those of Flink 2.3 and 1.20 and older ones, from the sources of its option classes
(`tools/key_tables.py`). It is read when a key is met that Rekindle does not have.
"""

from __future__ import annotations

import difflib
import re
from functools import cache

from rekindle.common.name_tables import table_lines

__all__ = ["FLINK_KEY_PATTERNS", "closest_first_word", "closest_keys", "flink_keys", "is_flink_key"]

_PATTERNS = """
    metrics.reporter.*.** metrics.scope.** traces.reporter.*.** events.reporter.*.** external-resource.*.**
    security.delegation.token.provider.*.** security.ssl.** containerized.master.env.** containerized.taskmanager.env.**
    flink.hadoop.** flink.yarn.** fs.*.limit.** fs.s3a.** fs.azure.** fs.gs.** fs.oss.** s3.** s3a.** gs.**
    kubernetes.*.annotations.** kubernetes.*.labels.** kubernetes.*.node-selector.** kubernetes.*.tolerations.**
    pipeline.global-job-parameters.** pipeline.jobvertex-parallelism-overrides.** python.job-options.**
    python.logging.level.overrides.** sql-gateway.endpoint.** table.catalog-store.** table.secret-store.**
    taskmanager.memory.managed.consumer-weights.** workflow-scheduler.** $internal.** internal.**"""
#: Keys with parts that users choose: `*` stands for one word, a final `**` for the rest.
FLINK_KEY_PATTERNS: tuple[str, ...] = tuple(_PATTERNS.split())


@cache
def flink_keys() -> frozenset[str]:
    """The keys without parts that users choose."""
    return frozenset(table_lines("rekindle.common", "flink_keys.txt"))


def is_flink_key(key: str) -> bool:
    """Whether Flink knows this key.

    >>> is_flink_key("metrics.reporter.prom.port"), is_flink_key("metrics.reportr.prom.port")
    (True, False)
    """
    return key in flink_keys() or _pattern().fullmatch(key) is not None


def closest_keys(key: str, own: frozenset[str] = frozenset()) -> list[str]:
    """The known keys that look most like this one, best first.

    >>> closest_keys("paralelism.default")
    ['parallelism.default']
    """
    return difflib.get_close_matches(key, sorted(flink_keys() | own), n=3, cutoff=0.75)


def closest_first_word(key: str) -> str | None:
    """The first word of Flink's keys that the first word of this key is, or looks like; None: it is like none.

    >>> closest_first_word("executon.mode"), closest_first_word("acme.mode")
    ('execution', None)
    """
    found = difflib.get_close_matches(key.partition(".")[0], _first_words(), n=1, cutoff=0.8)
    return found[0] if found else None


@cache
def _pattern() -> re.Pattern[str]:
    keys = (re.escape(key).replace(r"\*\*", ".+").replace(r"\*", r"[^.]+") for key in FLINK_KEY_PATTERNS)
    return re.compile("|".join(keys))


@cache
def _first_words() -> list[str]:
    return sorted({key.partition(".")[0] for key in flink_keys()})
