"""The choice of an older checkpoint in place of a damaged one (I16): the newest older good one is offered, and taken
without asking only where no output is committed twice by it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from rekindle import config
from rekindle.checkpoint.load_checkpoint import LoadedCheckpoint, load, newest_good_before
from rekindle.checkpoint.paths import url_of
from rekindle.checkpoint.store.port import Store
from rekindle.errors import CorruptCheckpointError
from rekindle.graph.committing_sinks import commits_output
from rekindle.graph.nodes import JobPlan, OperatorKind

_LOG = logging.getLogger("rekindle.checkpoint")


@dataclass(frozen=True)
class GoingBack:
    """Whether a job may begin from an older checkpoint than the one it should have begun from."""

    #: The names of the operators that would commit their output since then a second time.
    committing: tuple[str, ...] = ()
    #: Whether the user has allowed it all the same.
    allowed: bool = False

    @staticmethod
    def of(plan: JobPlan, *, results_given_out: bool = False) -> GoingBack:
        """From a job's sinks and settings. `results_given_out`: the run has given results to `execute_and_collect`,
        which cannot be taken back.
        """
        return GoingBack(tuple(_committing(plan, results_given_out)), plan.settings.allow_older_checkpoint)


def _committing(plan: JobPlan, results_given_out: bool) -> Iterator[str]:
    for node in plan.nodes:
        collected = results_given_out and node.kind is OperatorKind.COLLECT
        if commits_output(node) or collected:
            yield node.name


def decide(damage: str, alternative: str | None, going_back: GoingBack) -> str:
    """The checkpoint to take instead of a damaged one, or a CorruptCheckpointError that says why none is taken. Pure.

    >>> decide("chk-7 is damaged.", "file:///c/orders/t/chk-6", GoingBack())
    'file:///c/orders/t/chk-6'
    >>> decide("chk-7 is damaged.", None, GoingBack(allowed=True))
    Traceback (most recent call last):
    rekindle.errors.CorruptCheckpointError: chk-7 is damaged. It cannot be restored; there is no older good ...
    """
    if alternative is None:
        raise CorruptCheckpointError(f"{damage} It cannot be restored; there is no older good checkpoint beside it.")
    if going_back.committing and not going_back.allowed:
        names = " and ".join(f"'{name}'" for name in going_back.committing)
        raise CorruptCheckpointError(
            f"{damage} It cannot be restored; the newest older good checkpoint is {alternative}. It is not taken "
            f"unasked, because {names} would hand out again what was handed out since then: set "
            f"{config.RECOVERY_PATH.key} to it, or {config.RECOVERY_ALLOW_OLDER.key} to true.",
            alternative=alternative,
        )
    return alternative


def choose_restore(store: Store, path: str, damage: CorruptCheckpointError, going_back: GoingBack) -> LoadedCheckpoint:
    """The checkpoint to restore after the driver or a slot found the one at `path` damaged.

    Older ones are read to the last byte before one is taken. Raises CorruptCheckpointError if there is none, or if the
    job may not go back by itself.
    """
    older = damage.alternative if damage.path is not None else newest_good_before(store, path, deep=True)
    decide(damage.damage, url_of(store, older) if older is not None else None, going_back)
    assert older is not None, "`decide` raises if there is no older checkpoint"
    _LOG.warning(
        "%s The newest older good checkpoint, %s, is restored instead: what came after it is processed again.",
        damage.damage,
        url_of(store, older),
    )
    return load(store, older)


def load_or_older(store: Store, path: str, going_back: GoingBack) -> LoadedCheckpoint:
    """Load a checkpoint, or choose an older one if it is damaged."""
    try:
        return load(store, path)
    except CorruptCheckpointError as error:
        return choose_restore(store, error.path or path, error, going_back)
