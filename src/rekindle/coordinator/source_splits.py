"""The driver's part in sources: create the splits of a start without state, and discover new ones after it.

Splits are found in one place, so that all subtasks agree where each begins and who reads it. The driver keeps only what
the attempts before the first checkpoint begin with: readers have every split that they know in their snapshots, and
ignore what they know. So a split that was announced and is in no checkpoint yet is discovered again after a restart.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from rekindle.clock import WaitingClock
from rekindle.datastream.connectors.base import SourceSplit, assign_splits
from rekindle.datastream.connectors.split_codec import encode_splits
from rekindle.errors import ConnectorError, JobExecutionError, RekindleError
from rekindle.graph.nodes import JobPlan, OperatorKind, OperatorNode
from rekindle.protocol import AssignedSplits

_LOG = logging.getLogger("rekindle.job")


def reader_sources(plan: JobPlan) -> list[OperatorNode]:
    """The sources of a plan that are read split by split."""
    return [node for node in plan.nodes if node.kind is OperatorKind.SOURCE_READER]


class StartingSplits:
    """The splits with which the attempts of one run begin.

    A source is asked once per run, so that an attempt which fails before the first checkpoint is followed by one that
    begins where it began ("latest" would else be another place).
    """

    def __init__(self, plan: JobPlan) -> None:
        self._plan = plan
        self._created: dict[str, list[SourceSplit]] = {}  # by uid

    def assigned(self, restored: Collection[str]) -> list[AssignedSplits]:
        """Return the splits of an attempt; sources whose uids are `restored` get those that their state may lack."""
        return [
            assigned
            for node in reader_sources(self._plan)
            for assigned in _assigned(node, self._found_since(node) if node.uid in restored else self._of(node))
        ]

    def _of(self, node: OperatorNode) -> list[SourceSplit]:
        if node.uid not in self._created:
            self._created[node.uid] = _asked(node, "create", partial(node.function.create_splits, node.parallelism))
        return self._created[node.uid]

    def _found_since(self, node: OperatorNode) -> list[SourceSplit]:
        source = node.function
        if source.discovery_interval_ms is not None or not source.discovers_at_restore:
            return []  # the first look of `SplitDiscovery` finds them, or nothing shall
        return _asked(node, "discover", source.discover_splits)


def _asked(node: OperatorNode, what: str, ask: Callable[[], Iterable[SourceSplit]]) -> list[SourceSplit]:
    try:
        splits = list(ask())
    except RekindleError:
        raise
    except Exception as error:
        frames = error.__traceback__.tb_next if error.__traceback__ is not None else None
        told = "".join(traceback.format_exception(type(error), error, frames)).rstrip()
        raise JobExecutionError(f"{told}\n\nThe source '{node.name}' could not {what} its splits.") from error
    _check_unique(node, splits)
    return splits


def _check_unique(node: OperatorNode, splits: Iterable[SourceSplit]) -> None:
    seen: set[str] = set()
    for split in splits:
        if split.split_id in seen:
            raise ConnectorError(f"The source '{node.name}' has two splits with the id '{split.split_id}'.")
        seen.add(split.split_id)


def _assigned(node: OperatorNode, splits: list[SourceSplit]) -> Iterator[AssignedSplits]:
    for subtask, own in enumerate(assign_splits(splits, node.parallelism, node.function)):
        if own:
            yield AssignedSplits(node.uid, subtask, encode_splits(own))


def close_sources(plan: JobPlan) -> None:
    """Release what the sources opened on the driver; an error of one is logged."""
    for node in reader_sources(plan):
        try:
            node.function.close()
        except Exception as error:
            _LOG.warning("Source '%s': closing it on the driver failed: %s", node.name, error)


class SplitDiscovery:
    """Asks sources for new splits, on a thread of its own, while an attempt runs."""

    def __init__(self, plan: JobPlan, announce: Callable[[AssignedSplits], None], clock: WaitingClock) -> None:
        self._nodes = [node for node in reader_sources(plan) if node.function.discovery_interval_ms is not None]
        self._announce = announce
        self._clock = clock
        self._announced: dict[str, set[str]] = {node.uid: set() for node in self._nodes}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Ask each source now, and then every interval."""
        if self._nodes:
            self._thread = threading.Thread(target=self._run, name="split discovery", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        due = dict.fromkeys(range(len(self._nodes)), 0.0)
        while True:
            place = min(due, key=due.__getitem__)
            if self._clock.wait(self._ended, max(0.0, due[place] - self._clock.monotonic())):
                return
            node = self._nodes[place]
            self.discover(node)
            due[place] = self._clock.monotonic() + node.function.discovery_interval_ms / 1000

    def discover(self, node: OperatorNode) -> None:
        """Announce the splits of a source that were not announced in this attempt. A server may be away for a while."""
        try:
            splits = list(node.function.discover_splits())
        except Exception as error:
            _LOG.warning("Source '%s': looking for new splits failed, and is tried again: %s", node.name, error)
            return
        announced = self._announced[node.uid]
        new = [split for split in splits if split.split_id not in announced]
        announced.update(split.split_id for split in new)
        for assigned in _assigned(node, new):
            self._announce(assigned)
