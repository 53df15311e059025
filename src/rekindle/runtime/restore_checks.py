"""Report restored state that the program cannot read, has not registered, or has not read."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from rekindle.errors import IncompatibleStateError
from rekindle.runtime.context import OperatorContext
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.output import OperatorFailure
from rekindle.runtime.raw_streams import RawInputs

_LOG = logging.getLogger("rekindle.state")


@contextmanager
def restoring_state(operator: Operator, *unreadable: type[Exception]) -> Iterator[None]:
    """Raise IncompatibleStateError, and `unreadable` errors, as an OperatorFailure with the operator's name."""
    try:
        yield
    except IncompatibleStateError as error:
        raise OperatorFailure(operator.name) from error
    except unreadable as error:
        raise OperatorFailure(operator.name) from IncompatibleStateError(str(error))


def warn_unclaimed_state(context: OperatorContext) -> None:
    """Warn of restored state that is not registered: it may have been renamed by mistake."""
    keyed = context.keyed.unclaimed_names() if context.keyed is not None else []
    for name in keyed + context.operator_state.unclaimed_names():
        _LOG.warning(
            "%s: nothing has asked for the restored state '%s' so far. It is kept in every checkpoint; if it was "
            "renamed, give it its name back.",
            context.task_name,
            name,
        )


def warn_unread_raw_state(context: OperatorContext) -> None:
    """Warn of restored raw state that the function has not read: only the function could keep it."""
    raw, context.raw_inputs = context.raw_inputs, RawInputs()
    for kind, left in ("keyed", raw.keyed), ("operator", raw.operator):
        if left:
            _LOG.warning(
                "%s: the function has not read the restored raw %s state in initialize_state(), so that it is in no "
                "later checkpoint. To keep it, read it there with get_raw_%s_state_inputs() and write it again in "
                "snapshot_state().",
                context.task_name,
                kind,
                kind,
            )
