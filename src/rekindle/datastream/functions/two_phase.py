"""`TwoPhaseCommitSinkFunction`, Flink's older two-phase sink: one open transaction per subtask (I18)."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from rekindle.clock import SystemClock
from rekindle.common.typeinfo import Types, infer_type_info
from rekindle.datastream.functions.checkpointed import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)
from rekindle.datastream.functions.sink import RichSinkFunction, SinkFunction
from rekindle.datastream.state import ListState, ListStateDescriptor
from rekindle.datastream.state_descriptors import reserved
from rekindle.errors import CommitError, SerializationError
from rekindle.serde import tagged_dumps, tagged_loads, value_codec_for

_LOG = logging.getLogger("rekindle.sink")
_STATE = "two-phase-commit"
_FORMAT_VERSION = 1

TransactionT = TypeVar("TransactionT")


@dataclass
class _Open(Generic[TransactionT]):
    """A transaction and its start time."""

    transaction: TransactionT
    since_ms: int


@dataclass(frozen=True)
class _Recovered(Generic[TransactionT]):
    """The transactions and user context of one subtask in the restored checkpoint."""

    current: _Open[TransactionT] | None
    pending: list[_Open[TransactionT]]
    has_context: bool
    context: Any


class TwoPhaseCommitSinkFunction(RichSinkFunction, CheckpointedFunction, CheckpointListener, Generic[TransactionT]):
    """Writes the records between two checkpoints in one transaction, and commits it when the checkpoint is complete.

    A transaction is plain data that identifies the staged output (a path, an id, a dict), or a value of a declared
    type. After `pre_commit` the staged output must survive this process: another process may `recover_and_commit` it.

    >>> class Staged(TwoPhaseCommitSinkFunction):
    ...     visible, staged = [], {}
    ...     def begin_transaction(self):
    ...         name = f"t{len(self.staged)}"
    ...         self.staged[name] = []
    ...         return name
    ...     def invoke(self, transaction, value, context):
    ...         self.staged[transaction].append(value)
    ...     def pre_commit(self, transaction):
    ...         pass
    ...     def commit(self, transaction):
    ...         self.visible.extend(self.staged.pop(transaction, []))
    ...     def abort(self, transaction):
    ...         self.staged.pop(transaction, None)
    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> _ = env.enable_checkpointing(1000)
    >>> sink = env.from_collection([1, 2]).add_sink(Staged())
    """

    # These are class attributes, so that a subclass need not call __init__.
    _transaction_type: Any = None
    _context_type: Any = None
    _timeout_ms: int | None = None
    _ignores_failures_after_timeout = False
    _warning_ratio: float | None = None
    _clock = SystemClock()
    _current: _Open[TransactionT] | None = None
    _user_context: Any = None
    _finished = False
    _commits_at_end = False

    def __init__(self, transaction_type: Any = None, context_type: Any = None) -> None:
        """Declare the types of transactions and user context, as `output_type=` takes them. None means plain data."""
        self._transaction_type = None if transaction_type is None else infer_type_info(transaction_type)
        self._context_type = None if context_type is None else infer_type_info(context_type)

    # -- methods for subclasses ---------------------------------------------------------------------------------------

    @abstractmethod
    def begin_transaction(self) -> TransactionT:
        """Begin a transaction. Called after every checkpoint's barrier, and before `open`."""

    @abstractmethod
    def invoke(  # type: ignore[override]  # as in Flink: the transaction comes first
        self, transaction: TransactionT, value: Any, context: SinkFunction.Context
    ) -> None:
        """Write one record within the transaction."""

    @abstractmethod
    def pre_commit(self, transaction: TransactionT) -> None:
        """Flush at the barrier, so that only `commit` is left to do. The transaction gets no more records."""

    @abstractmethod
    def commit(self, transaction: TransactionT) -> None:
        """Make the transaction visible. It must succeed in the end, and may be called again after it was committed."""

    @abstractmethod
    def abort(self, transaction: TransactionT) -> None:
        """Discard the transaction. Nothing of it may become visible."""

    def recover_and_commit(self, transaction: TransactionT) -> None:
        """Commit a transaction that an earlier attempt has pre-committed and perhaps committed."""
        self.commit(transaction)

    def recover_and_abort(self, transaction: TransactionT) -> None:
        """Discard a transaction that an earlier attempt had open at the barrier."""
        self.abort(transaction)

    def initialize_user_context(self) -> Any:
        """Return data to be kept in checkpoints beside the transactions, such as a pool of ids, or None."""
        return None

    def get_user_context(self) -> Any:
        """Return the user context: from the restored checkpoint, or from `initialize_user_context`."""
        return self._user_context

    def finish_recovering_context(self, handled_transactions: list[TransactionT]) -> None:
        """Update the restored user context. The given transactions were committed or aborted."""

    def finish_processing(self, transaction: TransactionT | None) -> None:
        """Flush the buffers after the last record. The final checkpoint commits the transaction."""

    # -- options ------------------------------------------------------------------------------------------------------

    def set_transaction_timeout(self, transaction_timeout_ms: int) -> Self:
        """Set how long the external system keeps a transaction that is neither committed nor aborted."""
        if transaction_timeout_ms < 0:
            raise ValueError(f"A transaction timeout is 0 or more ms, not {transaction_timeout_ms}.")
        self._timeout_ms = transaction_timeout_ms
        return self

    def ignore_failures_after_transaction_timeout(self) -> Self:
        """On recovery, log a failed commit of a transaction older than the timeout and continue. Its data is lost."""
        self._ignores_failures_after_timeout = True
        return self

    def enable_transaction_timeout_warnings(self, warning_ratio: float) -> Self:
        """Log a warning for a commit when the transaction's age is above this share (0 to 1) of the timeout."""
        if not 0 <= warning_ratio <= 1:
            raise ValueError(f"A warning ratio is between 0 and 1, not {warning_ratio}.")
        self._warning_ratio = warning_ratio
        return self

    # -- two-phase commit protocol ------------------------------------------------------------------------------------

    def current_transaction(self) -> TransactionT | None:
        """Return the open transaction, or None after the last barrier."""
        return self._current.transaction if self._current is not None else None

    def pending_transactions(self) -> list[tuple[int, TransactionT]]:
        """Return (checkpoint id, transaction) for each pre-committed transaction, oldest first."""
        return [(checkpoint_id, each.transaction) for checkpoint_id, each in self._pending]

    def invoke_current(self, value: Any, context: SinkFunction.Context) -> None:
        """Call `invoke` for a record in the open transaction. The engine calls this method."""
        if self._current is None:
            self._begin()  # beginning it at the barrier has failed
        assert self._current is not None
        self.invoke(self._current.transaction, value, context)

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Commit the pre-committed transactions of the restored checkpoint, abort the open ones, begin a new one."""
        self._pending: list[tuple[int, _Open[TransactionT]]] = []
        self._finished = False
        self._commits_at_end = not context.is_checkpointing_enabled()
        self._transactions = value_codec_for(self._transaction_type)
        self._contexts = value_codec_for(self._context_type)
        descriptor = reserved(ListStateDescriptor(_STATE, Types.PRIMITIVE_ARRAY(Types.BYTE())))
        self._state: ListState[bytes] = context.get_operator_state_store().get_list_state(descriptor)
        recovered = list(map(self._decoded, self._state.get())) if context.is_restored() else []
        for each in recovered:
            self._recover(each)
        if not any(each.has_context for each in recovered):
            self._user_context = self.initialize_user_context()
        self._begin()

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Pre-commit the open transaction, and begin the next one unless the input has ended."""
        if self._current is not None:
            self.pre_commit(self._current.transaction)
            self._pending.append((context.get_checkpoint_id(), self._current))
            self._current = None
        if not self._finished:
            self._begin()
        self._state.update([self._encoded()])

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Commit the transactions of this and earlier checkpoints. Errors are raised after all were tried."""
        due = [each for each in self._pending if each[0] <= checkpoint_id]
        errors: list[Exception] = []
        for entry in due:
            try:
                self._warn_if_old(entry[1])
                self.commit(entry[1].transaction)
            except Exception as error:
                errors.append(error)
            self._pending.remove(entry)
        if errors:
            raise CommitError(
                f"{len(errors)} of {len(due)} transactions of checkpoint {checkpoint_id} could not be committed; the "
                f"first: {errors[0]!r}. A restart commits them again."
            ) from errors[0]

    def finish(self) -> None:
        """End the input. The final checkpoint commits the open transaction; without checkpointing, this call does."""
        self.finish_processing(self.current_transaction())
        self._finished = True
        if self._commits_at_end and self._current is not None:
            self.pre_commit(self._current.transaction)
            self.commit(self._current.transaction)
            self._current = None

    def close(self) -> None:
        """Abort the open transaction. A subclass that overrides this method must call it."""
        if self._current is not None:
            current, self._current = self._current, None
            self.abort(current.transaction)

    def _begin(self) -> None:
        self._current = _Open(self.begin_transaction(), self._clock.wall_ms())

    # -- recovery -----------------------------------------------------------------------------------------------------

    def _recover(self, recovered: _Recovered[TransactionT]) -> None:
        if recovered.has_context:
            self._user_context = recovered.context
        for each in recovered.pending:
            self._recover_and_commit(each)
        handled = [each.transaction for each in recovered.pending]
        if recovered.current is not None:
            self.recover_and_abort(recovered.current.transaction)
            handled.append(recovered.current.transaction)
        if recovered.has_context:
            self.finish_recovering_context(handled)

    def _recover_and_commit(self, each: _Open[TransactionT]) -> None:
        try:
            self._warn_if_old(each)
            self.recover_and_commit(each.transaction)
        except Exception as error:
            age_ms = self._clock.wall_ms() - each.since_ms
            if not self._ignores_failures_after_timeout or self._timeout_ms is None or age_ms <= self._timeout_ms:
                raise
            _LOG.error(
                "The transaction %r is lost: it is %d ms old, older than its timeout of %d ms, and could not be "
                "committed: %r", each.transaction, age_ms, self._timeout_ms, error,
            )  # fmt: skip

    def _warn_if_old(self, each: _Open[TransactionT]) -> None:
        if self._warning_ratio is None or self._timeout_ms is None:
            return
        age_ms = self._clock.wall_ms() - each.since_ms
        if age_ms > self._warning_ratio * self._timeout_ms:
            _LOG.warning(
                "The transaction %r is %d ms old, close to or above its timeout of %d ms: data may be lost; make "
                "checkpoints more often, or raise the timeout.", each.transaction, age_ms, self._timeout_ms,
            )  # fmt: skip

    # -- serialization ------------------------------------------------------------------------------------------------

    def _encoded(self) -> bytes:
        context = None if self._user_context is None else self._plain(self._contexts.encode, self._user_context)
        current = None if self._current is None else self._packed(self._current)
        pending = [self._packed(each) for _, each in self._pending]
        return tagged_dumps([_FORMAT_VERSION, current, pending, context])

    def _packed(self, each: _Open[TransactionT]) -> tuple[bytes, int]:
        return self._plain(self._transactions.encode, each.transaction), each.since_ms

    def _plain(self, encode: Callable[[Any], bytes], value: Any) -> bytes:
        try:
            return encode(value)
        except SerializationError as error:
            raise SerializationError(
                f"A transaction of {type(self).__name__} has no place in a checkpoint: {error} Or declare its type: "
                "super().__init__(transaction_type=...)."
            ) from error

    def _decoded(self, data: bytes) -> _Recovered[TransactionT]:
        version, current, pending, context = tagged_loads(data)
        if version != _FORMAT_VERSION:
            raise SerializationError(
                f"The transactions of {type(self).__name__} have format {version}; this version of Rekindle reads "
                f"{_FORMAT_VERSION}: use the version that wrote it."
            )
        return _Recovered(
            next(self._unpacked([] if current is None else [current]), None),
            list(self._unpacked(pending)),
            context is not None,
            None if context is None else self._contexts.decode(context),
        )

    def _unpacked(self, packed: list[tuple[bytes, int]]) -> Iterator[_Open[TransactionT]]:
        return (_Open(self._transactions.decode(data), since_ms) for data, since_ms in packed)
