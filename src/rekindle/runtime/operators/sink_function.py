"""The operator of a `SinkFunction`."""

from __future__ import annotations

from itertools import repeat
from typing import Any

from rekindle.common.watermark_strategy import NO_TIMESTAMP
from rekindle.datastream.functions import SinkFunction
from rekindle.runtime.context import user_timestamp
from rekindle.runtime.operators.base import Operator
from rekindle.runtime.operators.output import OperatorFailure, failed_record
from rekindle.runtime.operators.stateless import FunctionOperator


class _SinkContext(SinkFunction.Context):
    """The context of a `SinkFunction`."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self.current_timestamp = NO_TIMESTAMP

    def timestamp(self) -> int | None:
        return user_timestamp(self.current_timestamp)

    def current_watermark(self) -> int:
        return self._operator.current_watermark

    def current_processing_time(self) -> int:
        return self._operator.context.clock.wall_ms()


class SinkOperator(FunctionOperator):
    """Runs a `SinkFunction`, the end of a stream."""

    def open(self) -> None:
        self._context = _SinkContext(self)
        # A two-phase sink has `invoke_current`, which knows the open transaction.
        invoke = getattr(self.function, "invoke_current", None) or getattr(self.function, "invoke", None)
        self._invoke = invoke if callable(invoke) else (lambda value, _context: self.function(value))
        super().open()

    def process_batch(self, records: list[Any], timestamps: list[int] | None) -> None:
        invoke, context = self._invoke, self._context
        self.records_sunk += len(records)
        remaining = iter(records)
        try:
            for record, timestamp in zip(remaining, timestamps or repeat(NO_TIMESTAMP)):  # noqa: B905 (repeat is endless)
                context.current_timestamp = timestamp
                invoke(record, context)
        except Exception as error:
            raise failed_record(self.name, records, remaining) from error

    def finish(self) -> None:
        """Call the function's `finish`, if it has one: no record follows."""
        finisher = getattr(self.function, "finish", None)
        if callable(finisher):
            try:
                finisher()
            except Exception as error:
                raise OperatorFailure(self.name) from error
